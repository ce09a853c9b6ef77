// drover and git find the same changes in a workspace.

import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { gitAs, order, take, userRepository, writeFiles } from '../user-repository.ts';

const AROUND = ['src-', 'src.', 'src/a', 'src/a.t', 'src/a.ts0', 'src0'];
const LONG = ['a\nb', 'z', 'ü', '\u{ffff}', '😀']; // sorted by bytes

const CHANGES: readonly (readonly [string, readonly string[], (top: string) => void])[] = [
  ['nothing', [], () => undefined],
  ['another content', ['src/a.ts'], (top) => writeFileSync(join(top, 'src/a.ts'), 'other')],
  ['another mode', ['src/a.ts'], (top) => chmodSync(join(top, 'src/a.ts'), 0o755)],
  [
    'a link for a file',
    ['src/a.ts'],
    (top) => (rmSync(join(top, 'src/a.ts')), symlinkSync('b', join(top, 'src/a.ts'))),
  ],
  [
    'a folder for a file',
    ['src/a.ts', 'src/a.ts/b'],
    (top) => (rmSync(join(top, 'src/a.ts')), writeIn(top, 'src/a.ts/b')),
  ],
  ['a new name', ['src/a.ts', 'src/z.ts'], (top) => renameSync(join(top, 'src/a.ts'), join(top, 'src/z.ts'))],
  ['names around others', AROUND, (top) => AROUND.forEach(write(top))],
  ['names of many bytes', LONG, (top) => LONG.forEach(write(top))],
];

function write(top: string): (path: string) => void {
  return (path) => writeFileSync(join(top, path), path);
}

function writeIn(top: string, path: string): void {
  mkdirSync(join(top, path, '..'), { recursive: true });
  write(top)(path);
}

test.each(CHANGES)('%s', async (_, files, change) => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const workspace = await take(slots, head);
  change(workspace.path);
  const made = await workspace.commit(order('drover/run_1/task'));
  const args = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', head, made?.commit ?? head];
  const byGit = gitAs(slots.store.gitDir, user.env, args).split('\0').filter(Boolean);
  expect({ files: made?.files ?? [], byGit }).toEqual({ files, byGit: files });
});

test('if drover’s index changed, git is asked, and no change is hidden', async () => {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const workspace = await take(slots, head);
  await writeFiles(workspace.path, { 'src/new.ts': 'new' });
  const index = join(workspace.path, '..', 'git', 'index');
  const tampered = { ...user.env, GIT_INDEX_FILE: index, GIT_WORK_TREE: workspace.path };
  gitAs(slots.store.gitDir, tampered, ['add', 'src/new.ts']);
  gitAs(slots.store.gitDir, tampered, ['update-index', '--assume-unchanged', 'src/a.ts']);
  await writeFiles(workspace.path, { 'src/a.ts': 'other' });
  expect((await workspace.commit(order('drover/run_1/task')))?.files).toEqual(['src/a.ts', 'src/new.ts']);
});
