// The result of a run: the name of its branch, and the author of its commits.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { planned, RunDesk, submits, writes } from '../support/run/run-desk.ts';

const ONE = planned({ one: { answers: [writes('one.txt', '1\n'), submits('one')] } });

async function deskOfAda(): Promise<{ desk: RunDesk; env: Record<string, string> }> {
  const desk = await RunDesk.with(ONE);
  const config = join(desk.folder, 'gitconfig');
  await writeFile(config, '[user]\nname = Ada\nemail = ada@example.com\n');
  return { desk, env: { GIT_CONFIG_GLOBAL: config } };
}

const branches = (desk: RunDesk) => desk.git('for-each-ref', '--format=%(refname:lstrip=2)', 'refs/heads/').split('\n');

test('the result branch is named after the goal, and no other branch is created', async () => {
  const { desk, env } = await deskOfAda();
  const { end } = await desk.run(['run', 'Größe: make ONE file!'], { env });
  expect(end.delivered?.branch).toMatch(/^drover\/gro-e-make-one-file-[0-9a-f]{6}$/);
  expect(branches(desk)).toEqual([end.delivered?.branch, 'main']);
});

test.each([
  [
    'a long goal after whole words',
    'Make the shop fit for business: whole cents, stock',
    'make-the-shop-fit-for-business-whole',
  ],
  ['a word that is too long after a part of it', `x${'y'.repeat(60)}`, `x${'y'.repeat(39)}`],
  ['a goal without Latin letters after the run', '修复测试', 'run'],
])('the result branch is named for %s', async (_, goal, slug) => {
  const { desk, env } = await deskOfAda();
  const { end } = await desk.run(['run', goal], { env });
  expect(end.delivered?.branch?.slice(0, -7)).toBe(`drover/${slug}`);
});

test('commits have the user as author and name drover as co-author', async () => {
  const { desk, env } = await deskOfAda();
  const { end } = await desk.run(['run', 'make a file', '--branch', 'mine/one'], { env });
  expect(end.delivered).toMatchObject({ branch: 'mine/one', next: 'git merge mine/one' });
  const format = '--format=%an <%ae>|%(trailers:key=Co-authored-by,separator=%x2C)';
  expect(desk.git('log', '-1', format, 'mine/one')).toBe(
    'Ada <ada@example.com>|Co-authored-by: drover <drover@localhost>',
  );
});

test('--author wins over the author in the user config, and that over git', async () => {
  const { desk, env } = await deskOfAda();
  const folder = join(desk.folder, 'xdg', 'drover');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'config.yaml'), 'author: Bot <bot@example.com>\n');
  const given = { env: { ...env, XDG_CONFIG_HOME: join(desk.folder, 'xdg') } };
  await desk.run(['run', 'make a file', '--branch', 'by-config'], given);
  await desk.run(['run', 'make a file', '--branch', 'by-flag', '--author', 'Eve <eve@example.com>'], given);
  const authors = ['by-config', 'by-flag'].map((branch) => desk.git('log', '-1', '--format=%an <%ae>', branch));
  expect(authors).toEqual(['Bot <bot@example.com>', 'Eve <eve@example.com>']);
});

test.each([
  [['--branch', 'main'], "there is a branch 'main' already"],
  [['--branch', 'main/x'], "git cannot have 'main/x' beside the branch 'main'"],
  [['--branch', 'a..b'], "'a..b' is not a valid name of a branch"],
  [['--branch', 'drover'], "'drover' is reserved"],
  [['--branch', 'x', '--deliver', 'patch'], '--branch needs --deliver branch or merge'],
  [['--author', 'Ada'], "'Ada' is not an author"],
])('%j is refused before any request', async (flags, sentence) => {
  const desk = await RunDesk.with(ONE);
  const { code, stderr } = await desk.drover(['run', 'make a file', ...flags]);
  expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
  expect(desk.server.requests).toHaveLength(0);
});
