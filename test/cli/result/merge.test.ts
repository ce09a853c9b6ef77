// drover merge: what has landed is delivered after the run, in any form, once or many times.

import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, submits, writes } from '../../support/run/run-desk.ts';

const SCRIPT = planned({ one: { answers: [writes('one.txt', 'one\n'), submits('one')] } });

async function deskAfterRun(...more: readonly string[]): Promise<{ readonly desk: RunDesk; readonly run: string }> {
  const desk = await RunDesk.with(SCRIPT);
  const { end } = await desk.run(['run', 'do it', '--yes', ...more]);
  return { desk, run: end.run ?? '' };
}

test('merge brings what landed into the user’s branch, and again changes nothing', async () => {
  const { desk, run } = await deskAfterRun('--deliver', 'patch');
  const first = await desk.drover(['merge', run]);
  expect([first.code, first.stderr, await desk.read('one.txt')]).toEqual([0, '', 'one\n']);
  expect(first.stdout).toMatch(/^What landed is merged into main \([0-9a-f]{8}\)\.\n$/);
  const head = desk.git('rev-parse', 'HEAD');
  const second = await desk.drover(['merge', run, '--json']);
  expect(JSON.parse(second.stdout)).toEqual({ run, delivered: { deliver: 'merge', commit: head, branch: 'main' } });
  expect([desk.git('rev-parse', 'HEAD'), desk.git('status', '--porcelain')]).toEqual([head, '']);
  const shown = await desk.drover(['show', run]);
  expect(shown.stdout).toContain('merged into main');
});

test('merge without an id takes the newest run of this repository, and of no other', async () => {
  const { desk } = await deskAfterRun();
  const elsewhere = join(desk.folder, 'elsewhere');
  await mkdir(elsewhere);
  const other = await desk.drover(['merge'], { cwd: elsewhere });
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('there is no run of the repository in')]);
  expect(existsSync(`${desk.repository}/one.txt`)).toBe(false);
  const own = await desk.drover(['merge']);
  expect([own.code, await desk.read('one.txt')]).toEqual([0, 'one\n']);
});

test('merge delivers a branch of any name, and patches', async () => {
  const { desk, run } = await deskAfterRun('--deliver', 'patch');
  const named = await desk.drover(['merge', run, '--deliver', 'branch', '--branch', 'try-it']);
  expect([named.code, desk.git('show', 'try-it:one.txt')]).toEqual([0, 'one']);
  const again = await desk.drover(['merge', run, '--deliver', 'branch', '--branch', 'try-it']);
  expect([again.code, again.stderr]).toEqual([0, '']);
  const { stdout } = await desk.drover(['merge', run, '--deliver', 'patch', '--json']);
  const { patches } = (JSON.parse(stdout) as { delivered: { patches: readonly string[] } }).delivered;
  expect(patches.every((path) => existsSync(path))).toBe(true);
});

test('merge refuses a dirty checkout or a moved branch, and changes nothing', async () => {
  const { desk, run } = await deskAfterRun();
  const before = desk.git('for-each-ref');
  await desk.write({ 'a.txt': 'mine\n' });
  const dirty = await desk.drover(['merge', run]);
  expect([dirty.code, dirty.stderr]).toEqual([
    2,
    expect.stringContaining('your checkout has changes that are not committed or stashed: a.txt. Nothing was changed'),
  ]);
  expect([await desk.read('a.txt'), desk.git('for-each-ref')]).toEqual(['mine\n', before]);
  desk.git('-c', 'user.name=A', '-c', 'user.email=a@b.c', 'commit', '-qam', 'mine');
  const moved = await desk.drover(['merge', run]);
  expect([moved.code, moved.stderr]).toEqual([2, expect.stringContaining('main has moved since the run began')]);
  expect(existsSync(`${desk.repository}/one.txt`)).toBe(false);
});

test('merge refuses an untracked file in the way, and makes no branch instead', async () => {
  const { desk, run } = await deskAfterRun('--deliver', 'patch');
  await desk.write({ 'one.txt': 'mine\n' });
  const { code, stderr } = await desk.drover(['merge', run]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('git could not merge')]);
  expect([await desk.read('one.txt'), desk.git('branch', '--list', 'drover/*')]).toEqual(['mine\n', '']);
});

test('merge refuses a branch that holds other work, and a run that landed nothing', async () => {
  const { desk, run } = await deskAfterRun('--deliver', 'patch');
  desk.git('checkout', '-q', '-b', 'other');
  desk.git('-c', 'user.name=A', '-c', 'user.email=a@b.c', 'commit', '-q', '--allow-empty', '-m', 'mine');
  desk.git('checkout', '-q', 'main');
  const taken = await desk.drover(['merge', run, '--deliver', 'branch', '--branch', 'other']);
  expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining("there is a branch 'other' already")]);
  const empty = await RunDesk.with(planned({ one: { answers: [submits('nothing')] } }));
  const { end } = await empty.run(['run', 'do it', '--yes']);
  const nothing = await empty.drover(['merge', end.run ?? '']);
  expect([nothing.code, nothing.stderr]).toEqual([2, expect.stringContaining('nothing has landed in run')]);
});

test.each([
  ['bad name', "'bad name' is not a valid name of a branch"],
  ['main', "there is a branch 'main' already"],
  ['main/new', "git cannot have 'main/new' beside the branch 'main'"],
])('merge refuses the branch %j in words', async (branch, words) => {
  const { desk, run } = await deskAfterRun('--deliver', 'patch');
  const before = desk.git('for-each-ref');
  const { code, stderr } = await desk.drover(['merge', run, '--deliver', 'branch', '--branch', branch]);
  expect([code, stderr]).toEqual([2, expect.stringContaining(`--branch: ${words}`)]);
  expect(desk.git('for-each-ref')).toBe(before);
});

test('merge delivers what landed before an interruption, and resume delivers the rest', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { answers: [writes('one.txt', 'one\n'), submits('one')] },
      two: {
        dependsOn: ['one'],
        answers: [calls('shell', { command: 'sleep 60' }), writes('two.txt', '2\n'), submits('2')],
      },
    }),
  );
  const argv = ['run', 'do it', '--yes', '--workers', '0', '--json', '--deliver', 'merge'];
  const { stdout } = await desk.interrupted(argv, (out) => out.includes('"sleep 60"'));
  const run = (JSON.parse(stdout.slice(0, stdout.indexOf('\n'))) as { run: string }).run;
  expect(existsSync(`${desk.repository}/one.txt`)).toBe(false);
  expect((await desk.drover(['merge', run])).code).toBe(0);
  expect(await desk.read('one.txt')).toBe('one\n');
  const { code, end } = await desk.run(['resume', run, '--yes']);
  expect([code, end.delivered?.deliver, end.delivered?.instead]).toEqual([0, 'merge', undefined]);
  expect(await desk.read('two.txt')).toBe('2\n');
});

test('merge names a run whose commits are gone', async () => {
  const { desk, run } = await deskAfterRun('--deliver', 'patch');
  await rm(`${desk.home}/workspaces`, { recursive: true });
  const { code, stderr } = await desk.drover(['merge', run]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('are gone')]);
});
