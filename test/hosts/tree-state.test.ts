// Whether files of a workspace changed since the last look.

import { mkdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TreeState } from '@drover/hosts/serving/tree-state';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/workspace.ts';

async function treeAt(clock: { ms: number }) {
  const top = await temporaryFolder();
  await mkdir(join(top, 'src', 'deep'), { recursive: true });
  await writeFile(join(top, 'src', 'deep', 'a.txt'), 'one');
  return { state: new TreeState(top, () => clock.ms), file: join(top, 'src', 'deep', 'a.txt'), top };
}

test('a tree that nobody touched has not changed', async () => {
  const { state } = await treeAt({ ms: Date.now() + 10_000 });
  expect([state.hasChanged(), state.hasChanged(), state.hasChanged()]).toEqual([true, false, false]);
});

test.each(['written with the same size and time', 'added', 'removed'])(
  'a file that was %s is a change',
  async (how) => {
    const { state, file, top } = await treeAt({ ms: Date.now() + 10_000 });
    const time = new Date(0);
    await utimes(file, time, time);
    state.hasChanged();
    if (how === 'added') await writeFile(join(top, 'src', 'b.txt'), '');
    else if (how === 'removed') await rm(file);
    else {
      await writeFile(file, 'two');
      await utimes(file, time, time);
    }
    expect([state.hasChanged(), state.hasChanged()]).toEqual([true, false]);
  },
);

test('a tree with a fresh file counts as changed, since the clock of files is coarse', async () => {
  const clock = { ms: Date.now() };
  const { state } = await treeAt(clock);
  expect([state.hasChanged(), state.hasChanged()]).toEqual([true, true]);
  clock.ms += 10_000;
  expect([state.hasChanged(), state.hasChanged()]).toEqual([true, false]);
});
