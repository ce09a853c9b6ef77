// git: shows changes, and runs nothing that the repository configures.

import { existsSync } from 'node:fs';
import { appendFile, chmod, mkdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { git } from '@drover/core/tools/git';
import { runTool } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import { runSync } from '../../support/process/run-sync.ts';
import { workspace } from '../../support/workspace.ts';

async function repository() {
  const space = await workspace({ 'a.txt': 'one\n', 'b.txt': 'two\n' });
  const run = (...args: string[]) =>
    runSync('git', ['-c', 'user.name=A Person', '-c', 'user.email=a@example.com', ...args], {
      cwd: space.cwd,
      env: {
        PATH: space.context().env['PATH'],
        GIT_COMMITTER_DATE: '2026-01-02T03:04:05Z',
        GIT_AUTHOR_DATE: '2026-01-02T03:04:05Z',
        HOME: space.cwd,
      },
    }).toString();
  run('init', '--quiet', '--initial-branch=main');
  run('add', '.');
  run('commit', '--quiet', '--message=First things');
  const write = (path: string, content: string) => writeFile(join(space.cwd, path), content);
  return { ...space, run, write };
}

test('status shows the branch and the changes', async () => {
  const { call, write, run } = await repository();
  expect(await call(git, { action: 'status' })).toEqual({ output: '## main' });
  await write('a.txt', 'changed\n');
  await write('new.txt', '');
  run('rm', '--quiet', 'b.txt');
  expect((await call(git, { action: 'status' })).output).toBe('## main\n M a.txt\nD  b.txt\n?? new.txt');
  expect((await call(git, { action: 'status', path: 'a.txt' })).output).toBe('## main\n M a.txt');
});

test('diff separates working tree, stage and other revisions', async () => {
  const { call, write, run } = await repository();
  expect(await call(git, { action: 'diff' })).toEqual({ output: 'no differences' });
  await write('a.txt', 'staged\n');
  run('add', '.');
  await write('a.txt', 'working\n');
  const changes = async (args: object) => {
    const { output } = await call(git, { action: 'diff', ...args });
    return output.split('\n').filter((line) => /^[+-][^+-]/.test(line));
  };
  expect(await changes({})).toEqual(['-staged', '+working']);
  expect(await changes({ staged: true })).toEqual(['-one', '+staged']);
  expect(await changes({ revision: 'HEAD' })).toEqual(['-one', '+working']);
  expect(await changes({ path: 'b.txt' })).toEqual([]);
});

test('log shows the commits', async () => {
  const { call, run } = await repository();
  run('commit', '--quiet', '--allow-empty', '--message=Second things');
  const { output } = await call(git, { action: 'log' });
  expect(output.replace(/^\w+/gm, 'id')).toBe(
    'id 2026-01-02 A Person: Second things\nid 2026-01-02 A Person: First things',
  );
  expect((await call(git, { action: 'log', count: 1 })).output).toMatch(/Second things$/);
  expect((await call(git, { action: 'log', revision: 'HEAD~1' })).output).toMatch(
    /^\w+ 2026-01-02 A Person: First things$/,
  );
  expect((await call(git, { action: 'log', path: 'a.txt' })).output).toMatch(/^\w+ 2026-01-02 A Person: First things$/);
});

test.each(['--output=stolen', '-O/etc/passwd', 'HEAD; rm', 'HEAD --ext-diff', ''])(
  'an invalid revision is refused: %s',
  async (revision) => {
    const { call } = await repository();
    const { output } = await call(git, { action: 'diff', revision });
    expect(output).toBe(`${JSON.stringify(revision)} is not a revision`);
  },
);

test('a file name with a meaning to git is only a name', async () => {
  const { call, write } = await repository();
  await write(':(top)x', 'new');
  expect((await call(git, { action: 'status', path: ':(top)x' })).output).toBe('## main\n?? :(top)x');
});

test('a missing repository or revision is reported in git’s words', async () => {
  const { call } = await workspace();
  const { output, isError } = await call(git, { action: 'status' });
  expect(isError).toBe(true);
  expect(output).toMatch(/^fatal: not a git repository/);
  const unknown = await (await repository()).call(git, { action: 'log', revision: 'nowhere' });
  expect(unknown.output).toMatch(/^fatal: ambiguous argument 'nowhere'/);
});

test('nothing that the repository configures is run', async () => {
  const { cwd, run, write, context } = await repository();
  const proof = join(cwd, '..', 'it-ran');
  const trap = join(cwd, '..', 'trap.sh');
  await writeFile(trap, `#!/bin/sh\necho "$0 $@" >> ${proof}\ncat\n`);
  await chmod(trap, 0o755);
  await mkdir(join(cwd, '.git', 'hooks'), { recursive: true });
  for (const hook of ['post-index-change', 'fsmonitor-watchman', 'post-checkout', 'reference-transaction']) {
    await writeFile(join(cwd, '.git', 'hooks', hook), `#!/bin/sh\nexec ${trap}\n`, { mode: 0o755 });
  }
  const programs =
    'core.fsmonitor core.pager core.editor core.sshCommand core.askPass diff.external diff.trap.command ' +
    'diff.trap.textconv filter.trap.clean filter.trap.smudge filter.Other.Name.process gpg.program pager.diff ' +
    'pager.log pager.status credential.helper interactive.diffFilter';
  for (const name of programs.split(' ')) run('config', name, trap);
  run('config', 'filter.trap.required', 'true');
  run('config', 'log.showSignature', 'true');
  run('config', 'color.ui', 'always');
  run('config', 'color.status', 'always');
  await write('.gitattributes', '*.txt diff=trap filter=trap\nb.txt filter=Other.Name\n');
  await write('a.txt', 'changed\n');
  await appendFile(join(cwd, 'b.txt'), 'changed\n');

  const env = { ...context().env, GIT_EXTERNAL_DIFF: trap, GIT_PAGER: trap, GIT_SSH_COMMAND: trap, PAGER: trap };
  for (const input of [
    { action: 'status' },
    { action: 'diff' },
    { action: 'diff', revision: 'HEAD' },
    { action: 'log' },
  ]) {
    const { output, isError } = await runTool(git, input, { ...context(), env });
    expect(isError).toBeUndefined();
    expect(output).not.toContain('\x1b');
  }
  expect(existsSync(proof)).toBe(false);
});

test('the environment does not lead to another repository', async () => {
  const { context, cwd } = await repository();
  const other = await repository();
  other.run('commit', '--quiet', '--allow-empty', '--message=Elsewhere');
  const env = { ...context().env, GIT_DIR: join(other.cwd, '.git'), GIT_WORK_TREE: other.cwd };
  const { output } = await runTool(git, { action: 'log' }, { ...context(), cwd, env });
  expect(output).not.toContain('Elsewhere');
});

test('two hundred filters are disabled, and more are not risked', async () => {
  const { cwd, call } = await repository();
  const filters = Array.from({ length: 200 }, (_, at) => `[filter "f${at}"]\n\tclean = touch it-ran\n`);
  await appendFile(join(cwd, '.git', 'config'), filters.join(''));
  expect((await call(git, { action: 'status' })).output).toContain('main');
  await appendFile(join(cwd, '.git', 'config'), '[filter "one-more"]\n\tclean = touch it-ran\n');
  expect((await call(git, { action: 'status' })).output).toBe('the repository configures too many filters');
});

test('a filter that cannot be disabled is not risked', async () => {
  const { cwd, call } = await repository();
  await appendFile(join(cwd, '.git', 'config'), '[filter "a=b"]\n\tclean = touch it-ran\n');
  const { output } = await call(git, { action: 'status' });
  expect(output).toBe('the repository configures a filter with = in its name');
});

test('reading changes nothing, not even the index', async () => {
  const { cwd, call } = await repository();
  const index = async () => {
    const { ino, mtimeMs } = await stat(join(cwd, '.git', 'index'));
    return { ino, mtimeMs };
  };
  // Older than the index, and with a time that the index does not have: git would record that it is unchanged.
  await utimes(join(cwd, 'a.txt'), 1_700_000_000, 1_700_000_000);
  const before = await index();
  expect((await call(git, { action: 'status' })).output).toBe('## main');
  expect((await call(git, { action: 'diff' })).output).toBe('no differences');
  expect(await index()).toEqual(before);
});

test('a long diff is bounded', async () => {
  const { call, write } = await repository();
  await write('a.txt', Array.from({ length: 50_000 }, (_, index) => `line ${index}\n`).join(''));
  const { output } = await call(git, { action: 'diff' });
  expect(output.length).toBeLessThanOrEqual(30_000);
  expect(output).toMatch(/^diff --git a\/a\.txt[^]* left out; the whole output is in [^]*\+line 49999$/);
});
