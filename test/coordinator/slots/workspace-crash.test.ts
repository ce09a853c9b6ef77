// Workspaces after crashes: the next run can use everything that is left, and an attempt can resume its work.

import { readdirSync, readFileSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { contents, FILES, gitAs, order, take, userRepository, writeFiles } from '../user-repository.ts';
import { Slots } from '@drover/coordinator/slots/slots';
import { cut, expectUsable, fakeGit, start } from './workspace-cut.ts';

describe('killed in the middle, drover leaves nothing that a later run can’t use:', () => {
  test.each([
    ['while the slot is made', 1, 'before'],
    ['while files are staged', 2, 'after'],
    ['before the branch is set', 3, 'after'],
    ['while the slot is moved to the next task', 4, 'after'],
  ] as const)('%s', async (_, at, when) => {
    expect(await cut(at, when)).toEqual({ isThrough: false, work: expect.stringMatching(/ first$/) });
  });
});

test('an attempt resumes in its workspace as it left it', async () => {
  const user = await userRepository();
  const child = start(user, { waits: true });
  await child.ready;
  child.kill();
  await child.ended;

  const other = await user.slots('run_2');
  const { head } = await user.open();
  const theirs = await take(other, head);
  const slots = await user.slots('run_1');
  const workspace = await slots.again({ task: 'first', attempt: 1 });
  expect(workspace?.path).not.toBe(theirs.path);
  expect(workspace?.base).toBe(head);
  const { path = '' } = workspace ?? {};
  expect(readFileSync(join(path, 'src/a.ts'), 'utf8')).toBe('by the first');
  expect(readFileSync(join(path, 'x.log'), 'utf8')).toBe('ignored');
  expect(gitAs(path, user.env, ['status', '--porcelain', '--branch'])).toBe('## drover/run_1/first\n M src/a.ts');
  expect((await workspace?.commit(order('drover/run_1/first')))?.files).toEqual(['src/a.ts']);
  // Committed work, an attempt never begun, and one of another run cannot be resumed here.
  expect(await slots.again({ task: 'first', attempt: 1 })).toBeUndefined();
  expect(await slots.again({ task: 'first', attempt: 2 })).toBeUndefined();
  expect(await other.again({ task: 'first', attempt: 1 })).toBeUndefined();
});

test('two concurrent processes use different slots', async () => {
  const user = await userRepository();
  const child = start(user, { waits: true });
  await child.ready;
  const slots = await user.slots('run_2');
  slots.prepare(2);
  const { head } = await user.open();
  const paths = await Promise.all(['a', 'b'].map(async (task) => (await take(slots, head, { task })).path));
  expect(paths.map((path) => path.slice(slots.store.slotsFolder.length))).toEqual(['/2/tree', '/3/tree']);
  child.kill();
  await child.ended;
});

test('the next attempt takes the slot of the previous one, which is gone for good', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const first = await user.slots();
  const { path } = await take(first, head);
  await writeFiles(path, { 'src/a.ts': 'by attempt 1' });
  await first.close();
  const second = await user.slots();
  const workspace = await take(second, head, { attempt: 2 });
  expect(workspace.path).toBe(path);
  expect(contents(path)['src/a.ts']).toBe(`644 ${FILES['src/a.ts']}`);
  await second.close();
  expect(await (await user.slots()).again({ task: 'task', attempt: 1 })).toBeUndefined();
});

test('a slot has no owner during a move, so a partial move is not a workspace', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const first = await user.slots();
  const before = await take(first, head);
  await writeFiles(before.path, { 'src/a.ts': 'changed' });
  const made = await before.commit(order('drover/run_1/task'));
  await first.close();
  const seen = join(user.folder, 'seen');
  const PATH = fakeGit(user, `case "$*" in *read-tree*) ls "$GIT_WORK_TREE/.." > ${seen};; esac`);
  const repository = await user.open();
  const slots = await Slots.open({ home: user.home, repository, run: 'run_1', env: { ...user.env, PATH } });
  await take(slots, made?.commit ?? '', { attempt: 2 });
  await slots.close();
  expect(readFileSync(seen, 'utf8').split('\n')).toEqual(['git', 'trash', 'tree', '']);
});

test('a git that always prints warnings still gives workspaces', async () => {
  const user = await userRepository();
  const repository = await user.open();
  const PATH = fakeGit(user, 'echo warning: something else >&2');
  const slots = await Slots.open({ home: user.home, repository, run: 'run_1', env: { ...user.env, PATH } });
  for (const task of ['one', 'two']) {
    const workspace = await take(slots, repository.head, { task });
    expect(gitAs(workspace.path, user.env, ['status', '--porcelain', '--ignored'])).toBe('');
    await writeFiles(workspace.path, { [task]: '', 'x.log': '' });
    expect((await workspace.commit(order(`drover/run_1/${task}`)))?.files).toEqual([task]);
    await workspace.release();
  }
  await slots.close();
});

test('an attempt whose base or workspace is gone starts again', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const first = await take(slots, head, { task: 'first' });
  await writeFiles(first.path, { more: 'x' });
  const { commit = '' } = (await first.commit(order('drover/run_1/first'))) ?? {};
  const onIt = await take(slots, commit, { task: 'on-it' });
  await slots.close();
  rmSync(slots.store.gitDir, { recursive: true });
  rmSync(first.path, { recursive: true });
  const next = await user.slots();
  expect(await next.again({ task: 'first', attempt: 1 })).toBeUndefined();
  expect(await next.again({ task: 'on-it', attempt: 1 })).toBeUndefined();
  const paths = await Promise.all(['first', 'on-it'].map(async (task) => (await take(next, head, { task })).path));
  expect(paths.toSorted()).toEqual([first.path, onIt.path]);
});

// Relative to drover's folder for the repository.
const MISSING = [
  'repository.json',
  'store.git/HEAD',
  'store.git/config',
  'store.git/objects/info/alternates',
  'store.git/refs',
  'slots/1/.git',
  'slots/1/git/index',
  'slots/1/git/base',
  'slots/1/git',
  'slots/1/git/exclude',
  'slots/1/tree',
  'slots/1/tree/.git/HEAD',
  'slots/1.lock',
];

describe('a run that finds only a part of its files works without', () => {
  test.each(MISSING)('%s', async (path) => {
    const user = await userRepository();
    const slots = await user.slots();
    await (await take(slots, (await user.open()).head)).release();
    await slots.close();
    rmSync(join(slots.store.folder, path), { recursive: true });
    await expectUsable(user);
  });
});

test('partial files of a crash block no run', async () => {
  const user = await userRepository();
  const slots = await user.slots();
  const workspace = await take(slots, (await user.open()).head);
  await writeFiles(workspace.path, { 'src/a.ts': 'x' });
  await workspace.release();
  await slots.close();
  await writeFiles(slots.store.folder, {
    'slots/1/owner.json.0b5a': '{"run":',
    'slots/1/git/index.lock': 'half',
    'slots/1/git/index.new': 'half',
    'slots/1/git/base': 'half',
    'slots/1/git/index.commit': 'half',
    'slots/1/git/index.commit.lock': 'half',
    'slots/1/trash/old/file': 'x',
    'store.git/HEAD.0b5a': 'ref',
  });
  unlinkSync(join(workspace.path, '.git/HEAD'));
  await expectUsable(user);
  expect(readdirSync(join(slots.store.folder, 'slots/1/trash'))).toEqual([]);
});

test('a slot with an unreadable owner is never taken', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  await take(slots, head);
  await slots.close();
  await writeFiles(slots.store.slotsFolder, { '1/owner.json': '' });
  const { path } = await take(await user.slots('run_2'), head);
  expect(path.slice(slots.store.slotsFolder.length)).toBe('/2/tree');
});

test('a cancelled take returns its slot', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const stop = new AbortController();
  const taking = take(slots, head, { signal: stop.signal });
  stop.abort();
  await expect(taking).rejects.toThrow('interrupted');
  const { path } = await take(slots, head, { task: 'next' });
  expect(path.slice(slots.store.slotsFolder.length)).toBe('/1/tree');
  expect(gitAs(path, user.env, ['status', '--porcelain', '--ignored'])).toBe('');
});
