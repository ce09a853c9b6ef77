// commit: commits the changes, runs no hook, and is asked about.

import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { judgeCall, type Policy } from '@drover/core/permission/policy';
import { parsePermissionRule } from '@drover/core/permission/rules';
import { commit } from '@drover/core/tools/commit';
import { runTool } from '@drover/core/tools/tool';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runSync } from '../../support/process/run-sync.ts';
import { workspace } from '../../support/workspace.ts';

/** A repository with one commit, a hook that would create a file, and two changed files. */
async function repository() {
  const made = await workspace({ 'a.txt': 'a\n', 'deep/b.txt': 'b\n' });
  const git = (...args: readonly string[]) => runSync('git', args, { cwd: made.cwd }).toString().trimEnd();
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'A Person');
  git('config', 'user.email', 'person@example.com');
  git('add', '-A');
  git('commit', '-q', '-m', 'first');
  const hook = join(made.cwd, '.git/hooks/pre-commit');
  await mkdir(join(made.cwd, '.git/hooks'), { recursive: true });
  await writeFile(hook, `#!/bin/sh\ntouch ${made.cwd}/hook-ran\n`);
  await chmod(hook, 0o755);
  await writeFile(join(made.cwd, 'a.txt'), 'changed\n');
  await writeFile(join(made.cwd, 'deep/b.txt'), 'changed\n');
  await writeFile(join(made.cwd, 'new.txt'), 'new\n');
  return { ...made, git };
}

test('commit takes all changes by default, and runs no hook', async () => {
  const { call, cwd, git } = await repository();
  const { isError } = await call(commit, { message: 'Change it\n\nFor a reason.' });
  expect([isError, git('status', '--short'), git('log', '-1', '--format=%an %B')]).toEqual([
    undefined,
    '',
    'A Person Change it\n\nFor a reason.',
  ]);
  expect(existsSync(join(cwd, 'hook-ran'))).toBe(false);
});

test('only named paths are committed, whatever else is staged', async () => {
  const { call, git } = await repository();
  git('add', 'new.txt');
  await call(commit, { message: 'One', paths: ['a.txt'] });
  expect([git('show', '--name-only', '--format=', 'HEAD'), git('status', '--short')]).toEqual([
    'a.txt',
    ' M deep/b.txt\nA  new.txt',
  ]);
});

test('a path outside the folder is refused, and an empty commit is reported', async () => {
  const { call, cwd, git } = await repository();
  await symlink('/etc', join(cwd, 'out'));
  for (const path of ['../x', '/etc/passwd', 'out/passwd'])
    expect(await call(commit, { message: 'm', paths: [path] })).toMatchObject({ isError: true });
  await call(commit, { message: 'all' });
  expect(await call(commit, { message: 'again' })).toMatchObject({
    isError: true,
    output: expect.stringContaining('nothing to commit'),
  });
  expect(git('rev-list', '--count', 'HEAD')).toBe('2');
  expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe('changed\n');
});

test('files with a filter that could run a script are refused, and it never runs', async () => {
  const { call, cwd, git } = await repository();
  await writeFile(join(cwd, 'clean.sh'), `touch ${cwd}/taken; cat\n`);
  git('config', 'filter.own.clean', 'sh clean.sh');
  const unused = await call(commit, { message: 'without the filter' });
  expect([unused.isError, existsSync(join(cwd, 'taken'))]).toEqual([undefined, false]);
  await writeFile(join(cwd, '.gitattributes'), '*.txt filter=own\n');
  await writeFile(join(cwd, 'a.txt'), 'again\n');
  const { output, isError } = await call(commit, { message: 'with it' });
  expect([isError, existsSync(join(cwd, 'taken'))]).toEqual([true, false]);
  expect(output).toContain("a.txt has the filter 'own', which would run 'sh clean.sh' outside the sandbox");
});

test('filters of LFS run, since a commit without them would be wrong', async () => {
  const { context, cwd, git } = await repository();
  const bin = join(cwd, '..', 'bin');
  await mkdir(bin, { recursive: true });
  await writeFile(join(bin, 'git-lfs'), '#!/bin/sh\ncat > /dev/null; echo pointer\n');
  await chmod(join(bin, 'git-lfs'), 0o755);
  git('config', 'filter.lfs.clean', 'git-lfs clean -- %f');
  await writeFile(join(cwd, '.gitattributes'), '*.txt filter=lfs\n');
  const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  const { isError } = await runTool(commit, { message: 'large' }, { ...context(), env: { ...context().env, ...env } });
  expect([isError, git('show', 'HEAD:new.txt')]).toEqual([undefined, 'pointer']);
});

test('a repository inside the folder is left out, and none of its filters runs', async () => {
  const { call, cwd, git } = await repository();
  const nested = join(cwd, 'x');
  await mkdir(nested);
  const inside = (...args: readonly string[]) => runSync('git', args, { cwd: nested });
  inside('init', '-q');
  await writeFile(join(nested, 'f'), '1\n');
  inside('add', 'f');
  inside('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '-m', 'i');
  await writeFile(join(nested, '.gitattributes'), '* filter=e\n');
  inside('config', 'filter.e.clean', `touch ${cwd}/taken; cat`);
  // The same commit inside: git would look for changed files there.
  const head = inside('rev-parse', 'HEAD').toString().trimEnd();
  git('update-index', '--add', '--cacheinfo', `160000,${head},x`);
  await writeFile(join(nested, 'f'), '2\n');
  const { output, isError } = await call(commit, { message: 'all' });
  expect([isError, existsSync(join(cwd, 'taken'))]).toEqual([undefined, false]);
  expect(output).toContain('x is a repository of its own, and is left out');
});

test('a commit is asked about, inside a sandbox too, unless a rule allows it', async () => {
  const { cwd: root } = await workspace();
  const policy: Policy = { root, rules: [], yes: false, workspace: true, contained: true };
  const input = { message: 'Change it' };
  expect(await judgeCall(policy, commit, input)).toMatchObject({ effect: 'ask' });
  const allowed = { ...policy, rules: [parsePermissionRule('commit', 'allow')] };
  expect(await judgeCall(allowed, commit, input)).toMatchObject({ effect: 'allow' });
});
