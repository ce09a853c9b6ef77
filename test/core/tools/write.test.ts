// write: files created and replaced atomically.

import { watch } from 'node:fs';
import { chmod, mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { isLeftoverFile } from '@drover/core/tools/files/leftovers';
import { edit } from '@drover/core/tools/edit';
import { write } from '@drover/core/tools/write';
import { expect, test } from 'vitest';
import { workspace } from '../../support/workspace.ts';

test('a new file is created with its folders', async () => {
  const { cwd, call } = await workspace();
  expect(await call(write, { path: 'a/b/c.txt', content: 'one\ntwo\n' })).toEqual({
    output: 'created a/b/c.txt (2 lines)',
    details: { path: 'a/b/c.txt', created: true, added: 2, removed: 0 },
  });
  expect(await readFile(join(cwd, 'a/b/c.txt'), 'utf8')).toBe('one\ntwo\n');
});

test('a file is replaced, and the change reported', async () => {
  const { cwd, call } = await workspace({ 'a.txt': 'one\ntwo\nthree\n' });
  expect(await call(write, { path: 'a.txt', content: 'one\n2\nthree\nfour\n' })).toEqual({
    output: 'updated a.txt (+2 -1)',
    details: {
      path: 'a.txt',
      created: false,
      added: 2,
      removed: 1,
      diff: '--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four',
    },
  });
  expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe('one\n2\nthree\nfour\n');
  expect(await readdir(cwd)).toEqual(['a.txt']);
});

test('the mode of a replaced file stays', async () => {
  const { cwd, call } = await workspace({ 'run.sh': 'true\n' });
  await chmod(join(cwd, 'run.sh'), 0o775);
  await call(write, { path: 'run.sh', content: 'false\n' });
  expect((await stat(join(cwd, 'run.sh'))).mode & 0o7777).toBe(0o775);
});

test('equal content changes nothing', async () => {
  const { cwd, call } = await workspace({ 'a.txt': 'one\n' });
  const before = await stat(join(cwd, 'a.txt'));
  expect((await call(write, { path: 'a.txt', content: 'one\n' })).output).toBe('a.txt already has this content');
  expect((await stat(join(cwd, 'a.txt'))).ino).toBe(before.ino);
});

test('binary data is replaced without a diff', async () => {
  const { cwd, call } = await workspace({ 'a.bin': Buffer.from([0, 1, 2]) });
  expect(await call(write, { path: 'a.bin', content: '' })).toEqual({
    output: 'replaced a.bin (0 lines)',
    details: { path: 'a.bin', created: false },
  });
  expect(await readFile(join(cwd, 'a.bin'), 'utf8')).toBe('');
});

test('two unrelated texts are compared within a bound', async () => {
  const text = (word: string) => Array.from({ length: 50_000 }, (_, index) => `${word} ${index}\n`).join('');
  const { call } = await workspace({ 'a.txt': text('old') });
  expect(await call(write, { path: 'a.txt', content: text('new') })).toEqual({
    output: 'updated a.txt (+50000 -50000)',
    details: { path: 'a.txt', created: false, added: 50_000, removed: 50_000 },
  });
});

test('a folder is not replaced, and nothing is left beside it', async () => {
  const { cwd, call } = await workspace();
  await mkdir(join(cwd, 'a'));
  expect(await call(write, { path: 'a', content: 'x' })).toEqual({ output: 'a is a folder', isError: true });
  expect(await readdir(cwd)).toEqual(['a']);
});

test('a dangling link inside the workspace leads to a new file', async () => {
  const { cwd, call } = await workspace();
  await symlink('target.txt', join(cwd, 'link'));
  expect((await call(write, { path: 'link', content: 'x' })).output).toBe('created target.txt (1 line)');
  expect(await readFile(join(cwd, 'link'), 'utf8')).toBe('x');
});

test('of many concurrent writes one remains, whole', async () => {
  const { cwd, call } = await workspace();
  const contents = Array.from({ length: 20 }, (_, index) => `${index}`.repeat(100_000));
  await Promise.all(contents.map((content) => call(write, { path: 'a.txt', content })));
  expect(contents).toContain(await readFile(join(cwd, 'a.txt'), 'utf8'));
  expect(await readdir(cwd)).toEqual(['a.txt']);
});

test('a temporary file of a killed drover is recognised by its name', async () => {
  const { cwd, call } = await workspace({ 'a.txt': 'old\n' });
  const seen = new Set<string>();
  const watcher = watch(cwd, (_, name) => seen.add(String(name)));
  await call(write, { path: 'a.txt', content: 'new\n' });
  await expect.poll(() => [...seen].filter((name) => name !== 'a.txt').map(isLeftoverFile)).toEqual([true]);
  watcher.close();
  expect([isLeftoverFile('a.txt'), isLeftoverFile('src/.a.txt.0123456789ab.drover-new')]).toEqual([false, true]);
});

const deep = (folders: number) => `${'d/'.repeat(folders)}a.txt`;

test.each([
  ['65 folders', deep(65), 'the path has 65 folders, at most 64 are allowed: choose a shorter path'],
  ['100 folders', deep(100), 'the path has 100 folders, at most 64 are allowed: choose a shorter path'],
  [
    'a folder of 256 bytes',
    `new/${'n'.repeat(256)}/a.txt`,
    'the path has 256 bytes in one name, at most 255 are allowed: choose a shorter path',
  ],
  [
    'a name of 86 characters in 258 bytes',
    `new/deeper/${'漢'.repeat(86)}`,
    'the path has 258 bytes in one name, at most 255 are allowed: choose a shorter path',
  ],
  [
    '1,207 bytes',
    `${'n'.repeat(200)}/`.repeat(6) + 'a',
    'the path has 1207 bytes, at most 1024 are allowed: choose a shorter path',
  ],
])('a path of %s is refused before a folder is made', async (_, path, output) => {
  const { cwd, call } = await workspace();
  expect(await call(write, { path, content: 'x' })).toEqual({ output, isError: true });
  expect(await call(edit, { path, old: 'x', new: 'y' })).toEqual({ output, isError: true });
  expect(await readdir(cwd)).toEqual([]);
});

test('a path longer than the system takes is refused before a folder is made', async () => {
  const { cwd, call } = await workspace();
  const { isError } = await call(write, { path: deep(100_000), content: 'x' });
  expect([isError, await readdir(cwd)]).toEqual([true, []]);
});

test('a link does not hide the depth of a path', async () => {
  const { cwd, call } = await workspace({ [deep(60)]: 'x' });
  await symlink('d/'.repeat(60), join(cwd, 'short'));
  const output = 'the path has 65 folders, at most 64 are allowed: choose a shorter path';
  expect(await call(write, { path: `short/${deep(5)}`, content: 'x' })).toEqual({ output, isError: true });
  expect(await readdir(join(cwd, 'd/'.repeat(60)))).toEqual(['a.txt']);
});

test.each([
  ['64 folders', deep(64)],
  ['a name of 255 bytes', `new/${'n'.repeat(255)}`],
  ['a name of 85 characters in 255 bytes', `new/${'漢'.repeat(85)}`],
])('a path of %s is written', async (_, path) => {
  const { cwd, call } = await workspace();
  expect(await call(write, { path, content: 'x' })).toMatchObject({ output: expect.stringMatching(/^created /) });
  expect(await readFile(join(cwd, path), 'utf8')).toBe('x');
});
