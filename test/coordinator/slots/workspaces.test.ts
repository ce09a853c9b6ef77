// Workspaces in a run: taken, committed, released, reused, and kept for the next run.

import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRepository } from '@drover/coordinator/git/repository';
import { Slots } from '@drover/coordinator/slots/slots';
import { expect, test } from 'vitest';
import { contents, everyByte, FILES, gitAs, order, take, userRepository, writeFiles } from '../user-repository.ts';
import { proves } from '../../support/proves.ts';

test('a workspace holds the base commit on its own branch, without a remote', async () => {
  const user = await userRepository();
  const { head, identity } = await user.open();
  const slots = await user.slots();
  const { path, base } = await take(slots, head);

  const git = (...args: readonly string[]) => gitAs(path, user.env, args);
  expect(Object.keys(contents(path)).filter((name) => !name.endsWith('/'))).toEqual(Object.keys(FILES).toSorted());
  expect(base).toBe(head);
  expect(git('status', '--porcelain', '--branch')).toBe('## drover/run_1/task');
  expect(git('rev-parse', 'HEAD')).toBe(head);
  expect(git('log', '--format=%s')).toBe('first');
  expect(git('remote')).toBe('');
  expect(git('config', 'user.name')).toBe(identity.name);
  expect(git('fsck', '--connectivity-only')).toBe('');
  expect(path.startsWith(user.top)).toBe(false);
});

test('a worker’s files become one commit on the base, and the branch points to it', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const workspace = await take(slots, head);
  await writeFiles(workspace.path, { 'src/a.ts': 'changed', 'new/file.ts': 'new', 'debug.log': 'ignored' });
  rmSync(join(workspace.path, 'README.md'));
  symlinkSync('a.ts', join(workspace.path, 'src/link.ts'));
  chmodSync(join(workspace.path, 'src/b.ts'), 0o755);

  const made = await workspace.commit(order('drover/run_1/task'));

  const store = (...args: readonly string[]) => gitAs(slots.store.gitDir, user.env, args);
  expect(made).toEqual({
    commit: store('rev-parse', 'refs/heads/drover/run_1/task'),
    files: ['README.md', 'new/file.ts', 'src/a.ts', 'src/b.ts', 'src/link.ts'],
    leftOut: [],
  });
  expect(store('log', '--format=%P %an %ae %aI %cI %B', '-1', made?.commit ?? '')).toBe(
    `${head} drover drover@localhost 2026-03-04T05:06:07+00:00 2026-03-04T05:06:07+00:00 what was done`,
  );
  expect(store('diff-tree', '-r', '--name-status', head, made?.commit ?? '')).toBe(
    'D\tREADME.md\nA\tnew/file.ts\nM\tsrc/a.ts\nM\tsrc/b.ts\nA\tsrc/link.ts',
  );
  expect(await workspace.commit(order('drover/run_1/task'))).toEqual(made);
});

test('a change of equal length in the second of the checkout is committed', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const workspace = await take(slots, head);
  await writeFiles(workspace.path, { 'src/a.ts': 'export const a = 9;\n' });
  expect(gitAs(workspace.path, user.env, ['status', '--porcelain'])).toBe(' M src/a.ts');
  // Waits past the second in which the index is copied.
  await new Promise((resolve) => setTimeout(resolve, 1_050));
  expect((await workspace.commit(order('drover/run_1/task')))?.files).toEqual(['src/a.ts']);
});

test('without changes there is no commit', async () => {
  const user = await userRepository();
  const slots = await user.slots();
  const workspace = await take(slots, (await user.open()).head);
  await writeFiles(workspace.path, { 'build.log': 'ignored' });
  expect(await workspace.commit(order('drover/run_1/task'))).toBeUndefined();
});

test('a worker’s commits, stage and stash do not count: its files do', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const { path, commit } = await take(slots, head);
  const git = (...args: readonly string[]) => gitAs(path, user.env, args);
  await writeFiles(path, { 'one.txt': '1' });
  git('add', '--all');
  git('commit', '--quiet', '--message=mine');
  await writeFiles(path, { 'two.txt': '2', 'three.txt': '3' });
  git('add', 'three.txt');
  rmSync(join(path, 'three.txt'));
  rmSync(join(path, '.git'), { recursive: true });
  expect((await commit(order('drover/run_1/task')))?.files).toEqual(['one.txt', 'two.txt']);
});

test('everything may be deleted, and that is a commit too', async () => {
  const user = await userRepository({ a: '1', 'b/c': '2' });
  const slots = await user.slots();
  const { path, commit } = await take(slots, (await user.open()).head);
  for (const name of ['a', 'b']) rmSync(join(path, name), { recursive: true });
  expect((await commit(order('drover/run_1/task')))?.files).toEqual(['a', 'b/c']);
});

test('a dependent task starts from its dependency’s commit', async () => {
  const user = await userRepository();
  const slots = await user.slots();
  const first = await take(slots, (await user.open()).head);
  await writeFiles(first.path, { 'src/a.ts': 'by the first' });
  const { commit = '' } = (await first.commit(order('drover/run_1/first'))) ?? {};
  await first.release();

  const second = await take(slots, commit, { task: 'second' });
  expect(readFileSync(join(second.path, 'src/a.ts'), 'utf8')).toBe('by the first');
  expect(gitAs(second.path, user.env, ['log', '--format=%s'])).toBe('what was done\nfirst');
  await writeFiles(second.path, { 'src/b.ts': 'by the second' });
  const made = await second.commit(order('drover/run_1/second'));
  expect(made?.files).toEqual(['src/b.ts']);
});

proves('workspace.clean', 'a slot moves to its next task in place, and keeps nothing of the previous one', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const first = await take(slots, head);
  const clean = contents(first.path);
  const inode = lstatSync(join(first.path, 'src/deep/c.ts')).ino;
  const git = (...args: readonly string[]) => gitAs(first.path, user.env, args);
  await writeFiles(first.path, { 'src/a.ts': 'x', 'new.ts': 'x', 'x.log': 'x', 'node_modules/m/index.js': 'x' });
  git('stash', '--include-untracked');
  git('branch', 'mine');
  git('tag', 'mine');
  git('config', 'core.fsmonitor', 'touch /tmp/never');
  git('config', 'alias.st', 'status');
  await writeFiles(first.path, {
    '.git/hooks/pre-commit': 'exit 1',
    '.git/info/exclude': '*',
    '.git/info/attributes': '* filter=x',
    'src/a.ts': 'y',
    'staged.ts': 'y',
  });
  git('add', '--force', 'staged.ts');
  mkdirSync(join(first.path, 'empty/folders'), { recursive: true });
  await first.release();

  const second = await take(slots, head, { task: 'second' });
  const after = (...args: readonly string[]) => gitAs(second.path, user.env, args);
  expect(second.path).toBe(first.path);
  expect(contents(second.path)).toEqual(clean);
  expect(lstatSync(join(second.path, 'src/deep/c.ts')).ino).toBe(inode);
  expect(after('status', '--porcelain', '--ignored', '--branch')).toBe('## drover/run_1/second');
  expect(after('for-each-ref', '--format=%(refname)')).toBe('refs/heads/drover/run_1/second');
  expect(after('reflog', '--all')).toBe('');
  expect(existsSync(join(second.path, '.git/hooks'))).toBe(false);
  expect(after('config', '--local', '--list', '--name-only').split('\n')).toEqual([
    'core.repositoryformatversion',
    'core.filemode',
    'core.bare',
    'core.logallrefupdates',
    'gc.auto',
    'user.name',
    'user.email',
  ]);
  expect(await second.commit(order('drover/run_1/second'))).toBeUndefined();
});

test('slots made ahead are taken, and the next run finds them', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  slots.prepare(2);
  const paths = await Promise.all(
    [1, 2, 3].map(async (worker) => (await take(slots, head, { worker, task: `t${worker}` })).path),
  );
  expect(paths.map((path) => path.slice(slots.store.slotsFolder.length))).toEqual(['/1/tree', '/2/tree', '/3/tree']);
  await slots.close();

  const other = await user.slots('run_2');
  const { path } = await take(other, head);
  // The first run has not released its slots, because it may be resumed.
  expect(path.slice(other.store.slotsFolder.length)).toBe('/4/tree');
});

test('a finished run leaves its slots to the next one, even with a new store', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const first = await take(slots, head);
  await writeFiles(first.path, { 'src/a.ts': 'by run 1', 'more.ts': 'by run 1' });
  const { commit = '' } = (await first.commit(order('drover/run_1/task'))) ?? {};
  await first.release();
  const onIt = await take(slots, commit, { task: 'on-it' });
  await onIt.release();
  await slots.close();
  rmSync(slots.store.gitDir, { recursive: true });

  const next = await user.slots('run_2');
  const workspace = await take(next, head);
  expect(workspace.path).toBe(first.path);
  expect(gitAs(workspace.path, user.env, ['status', '--porcelain', '--ignored'])).toBe('');
  await writeFiles(workspace.path, { 'src/a.ts': 'by run 2' });
  expect((await workspace.commit(order('drover/run_2/task')))?.files).toEqual(['src/a.ts']);
  // A commit that only the removed store had cannot be checked out, and the error says so.
  await expect(take(next, commit, { task: 'gone' })).rejects.toThrow('git read-tree');
  const after = await take(next, head, { task: 'after' });
  expect(contents(after.path)['src/a.ts']).toBe(`644 ${FILES['src/a.ts']}`);
});

proves('checkout.untouched', 'making, using and moving workspaces changes no byte of the checkout', async () => {
  const user = await userRepository();
  await user.write({ 'src/a.ts': 'not committed', untracked: 'x', 'node_modules/m.js': 'x', '.env': 'SECRET' });
  const before = everyByte(user.top);
  const { head, notIncluded } = await user.open();
  const slots = await user.slots();
  slots.prepare(2);
  const workspace = await take(slots, head);
  expect(existsSync(join(workspace.path, 'untracked'))).toBe(false);
  await writeFiles(workspace.path, { 'src/a.ts': 'by a worker' });
  await workspace.commit(order('drover/run_1/task'));
  await workspace.release();
  await (await take(slots, head, { task: 'more' })).release();
  await slots.close();
  expect(notIncluded).toEqual(['src/a.ts', 'untracked']);
  expect(everyByte(user.top)).toEqual(before);
});

test('a repository with borrowed objects in a folder with an odd name works', async () => {
  const user = await userRepository();
  const odd = join(user.folder, 'od:d "na\\me" #1');
  gitAs(user.folder, user.env, ['clone', '--quiet', '--shared', user.top, odd]);
  writeFileSync(join(odd, '.git/objects/info/alternates'), '../../../project/.git/objects\n');
  const repository = await openRepository(odd, user.env);
  const slots = await Slots.open({ home: join(user.folder, 'ho:me "x"'), repository, run: 'run_1', env: user.env });
  const workspace = await take(slots, repository.head);
  expect(gitAs(workspace.path, user.env, ['log', '--format=%s'])).toBe('first');
  await writeFiles(workspace.path, { b: 'x' });
  expect((await workspace.commit(order('drover/run_1/task')))?.files).toEqual(['b']);
  await slots.close();
});

test('workspaces work in a shallow repository', async () => {
  const user = await userRepository();
  await user.write({ 'src/a.ts': 'second' });
  user.git('-c', 'user.name=U', '-c', 'user.email=u@x', 'commit', '--quiet', '--all', '--message=second');
  gitAs(user.folder, user.env, ['clone', '--quiet', '--depth=1', `file://${user.top}`, 'shallow']);
  const repository = await openRepository(join(user.folder, 'shallow'), user.env);
  const slots = await Slots.open({ home: user.home, repository, run: 'run_1', env: user.env });
  const workspace = await take(slots, repository.head);
  await writeFiles(workspace.path, { b: 'x' });
  const made = await workspace.commit(order('drover/run_1/task'));
  expect(gitAs(workspace.path, user.env, ['log', '--format=%s'])).toBe('second');
  expect(gitAs(slots.store.gitDir, user.env, ['log', '--format=%s', made?.commit ?? ''])).toBe('what was done\nsecond');
  await slots.close();
});

test('a repository with SHA-256 ids works', async () => {
  const user = await userRepository(FILES, '--object-format=sha256');
  const { head } = await user.open();
  const slots = await user.slots();
  const first = await take(slots, head);
  await writeFiles(first.path, { 'src/a.ts': 'x', 'new.log': 'x', 'new.ts': 'x' });
  const made = await first.commit(order('drover/run_1/task'));
  expect(made).toEqual({ commit: expect.stringMatching(/^[0-9a-f]{64}$/), files: ['new.ts', 'src/a.ts'], leftOut: [] });
  await first.release();
  const second = await take(slots, head, { task: 'second' });
  expect(gitAs(second.path, user.env, ['status', '--porcelain', '--ignored'])).toBe('');
});

test('a file with a strange name is committed like any other', async () => {
  const names = ['a\nb', 'sp ace', ' lead', '"quoted"', '*', ':(top)x', 'ümläut', '-dash', '#hash', 'back\\slash'];
  const user = await userRepository(Object.fromEntries(names.map((name) => [name, name])));
  const { head } = await user.open();
  const slots = await user.slots();
  const first = await take(slots, head);
  const clean = contents(first.path);
  writeFileSync(Buffer.concat([Buffer.from(`${first.path}/`), Buffer.from([0xff, 0xfe])]), 'no text');
  for (const name of names) writeFileSync(join(first.path, `new ${name}`), name);
  const made = await first.commit(order('drover/run_1/task'));
  expect(made?.files.length).toBe(names.length + 1);
  await first.release();
  expect(contents((await take(slots, head, { task: 'second' })).path)).toEqual(clean);
});

test('resume takes back slots whose work is stored, and leaves resumable ones', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const gone = await user.slots();
  for (const task of ['landed', 'open']) await take(gone, head, { task });
  await gone.close();

  const slots = await user.slots();
  slots.reclaim(({ task }) => task === 'landed');
  const { path } = await take(slots, head, { task: 'next' });
  expect(path.slice(slots.store.slotsFolder.length)).toBe('/1/tree');
  expect((await slots.again({ task: 'open', attempt: 1 }))?.path).toBe(path.replace('/1/tree', '/2/tree'));
});

test('a partial file from a killed drover is not committed', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const { path, commit } = await take(slots, head);
  writeFileSync(join(path, '.a.txt.0123456789ab.drover-new'), 'half a fi');
  writeFileSync(join(path, '.env.drover-new'), 'somebody’s own');
  expect((await commit(order('drover/run_1/task')))?.files).toEqual(['.env.drover-new']);
});
