// A folder that is exchanged for a link between the check of a path and its use: the file tools refuse.
//
// The tests begin after the check, with a real path that leads through a link.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openToolFile, replaceToolFile } from '@drover/core/tools/files/content';
import { holdFileFolder } from '@drover/core/tools/files/held';
import { expect, test } from 'vitest';
import { workspace } from '../../support/workspace.ts';

const SECRET = 'a secret\n';

async function exchanged() {
  const { cwd, outside } = await withOutside();
  symlinkSync(outside, join(cwd, 'folder'));
  const place = (path: string) => ({ real: join(cwd, path), shown: path });
  return { cwd, outside, place };
}

async function withOutside() {
  const { cwd: around } = await workspace({ 'outside/secret.txt': SECRET, 'root/a.txt': 'one\n' });
  return { cwd: join(around, 'root'), outside: join(around, 'outside') };
}

test.runIf(process.platform === 'linux')('no file is read through an exchanged folder', async () => {
  const { place } = await exchanged();
  await expect(openToolFile(place('folder/secret.txt'))).rejects.toThrow('folder/secret.txt was exchanged');
});

test.runIf(process.platform === 'linux')('no file and no folder is made through an exchanged folder', async () => {
  const { outside, place } = await exchanged();
  for (const path of ['folder/new.txt', 'folder/secret.txt', 'folder/a/b/new.txt'])
    await expect(replaceToolFile(place(path), 'x')).rejects.toThrow(/exchanged|a folder is needed/);
  expect(readdirSync(outside)).toEqual(['secret.txt']);
  expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe(SECRET);
});

test.runIf(process.platform === 'linux')('a held folder stays the same one when a link takes its place', async () => {
  const { cwd, outside } = await withOutside();
  mkdirSync(join(cwd, 'folder'));
  await using held = await holdFileFolder(join(cwd, 'folder'));
  renameSync(join(cwd, 'folder'), join(cwd, 'moved'));
  symlinkSync(outside, join(cwd, 'folder'));
  writeFileSync(join(held.at, 'new.txt'), 'x');
  expect([existsSync(join(cwd, 'moved', 'new.txt')), readdirSync(outside)]).toEqual([true, ['secret.txt']]);
});

test.runIf(process.platform === 'linux')('a link put in the place of a file is not a file to replace', async () => {
  const { cwd, outside } = await withOutside();
  symlinkSync(join(outside, 'secret.txt'), join(cwd, 'link.txt'));
  const place = { real: join(cwd, 'link.txt'), shown: 'link.txt' };
  await expect(replaceToolFile(place, 'x')).rejects.toThrow('link.txt is not a file');
  expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe(SECRET);
});
