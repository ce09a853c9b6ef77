// read and list: files and folders as the model sees them.

import { mkdir, open, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { list } from '@drover/core/tools/list';
import { read } from '@drover/core/tools/read';
import { expect, test } from 'vitest';
import { runSync } from '../../support/process/run-sync.ts';
import { callIn, memoryGrowthDuring, workspace } from '../../support/workspace.ts';

const TEN = Array.from({ length: 10 }, (_, index) => `line ${index + 1}`).join('\n');

test.each<[string, string, object, string]>([
  ['all of it', 'one\ntwo\n', {}, '1\tone\n2\ttwo'],
  ['a last line without an end', 'one\ntwo', {}, '1\tone\n2\ttwo'],
  ['empty lines', '\n\na\n', {}, '1\t\n2\t\n3\ta'],
  ['a part', TEN, { from: 3, lines: 2 }, '3\tline 3\n4\tline 4\n[more lines follow: go on with from=5]'],
  ['the end', TEN, { from: 9 }, '9\tline 9\n10\tline 10'],
  ['exactly as many lines as there are', 'a\nb\n', { lines: 2 }, '1\ta\n2\tb'],
  ['Windows line ends', 'a\r\nb\r\n', {}, '1\ta\n2\tb'],
  ['a byte order mark', '\uFEFFa\n', {}, '1\ta'],
  ['an empty file', '', {}, '(empty file)'],
])('read shows %s', async (_, text, range, output) => {
  expect(await callIn({ 'a.txt': text }, read, { path: 'a.txt', ...range })).toEqual({ output });
});

test.each<[string, Record<string, string | Buffer>, object, string]>([
  ['a line past the end', { 'a.txt': TEN }, { from: 11 }, 'a.txt ends with line 10'],
  ['a folder', { 'a.txt/b': '' }, {}, 'a.txt is a folder: use list'],
  ['what is not there', {}, {}, 'a.txt does not exist'],
  ['a near name', { 'A.TXT': '', 'b.text': '', 'q.md': '' }, {}, 'a.txt does not exist: did you mean A.TXT?'],
  ['binary data', { 'a.txt': Buffer.from([0x7f, 0x45, 0, 1]) }, {}, 'a.txt is not UTF-8 text (4 bytes)'],
  ['another encoding', { 'a.txt': Buffer.from('caf\xe9\n', 'latin1') }, {}, 'a.txt is not UTF-8 text (5 bytes)'],
])('read explains %s', async (_, files, range, output) => {
  expect(await callIn(files, read, { path: 'a.txt', ...range })).toEqual({ output, isError: true });
});

test('similar names are listed with their folder', async () => {
  const { output } = await callIn({ 'src/session.ts': '' }, read, { path: 'src/sesion.ts' });
  expect(output).toBe('src/sesion.ts does not exist: did you mean src/session.ts?');
});

test('read stops at its output limit and says how to continue', async () => {
  const text = Array.from({ length: 2_000 }, (_, index) => `${index + 1} ${'x'.repeat(95)}`).join('\n');
  const space = await workspace({ 'a.txt': text });
  const { output } = await space.call(read, { path: 'a.txt' });
  const next = Number(/go on with from=(\d+)\]$/.exec(output)?.[1]);
  expect(output.length).toBeLessThanOrEqual(30_000);
  expect(next).toBeGreaterThan(250);
  expect((await space.call(read, { path: 'a.txt', from: next, lines: 1 })).output).toContain(`${next}\t${next} xxx`);
});

test('a line of any length is shown by its start', async () => {
  const { output } = await callIn({ 'a.js': `${'🦊'.repeat(100_000)}\nnext` }, read, { path: 'a.js' });
  expect(output).toBe(`1\t${'🦊'.repeat(1_000)}… [the line has 400.0 KB]\n2\tnext`);
});

test.each([
  ['many lines', `${'x'.repeat(99)}\n`.repeat(10_000), 1_200_001, '1200001\tthe end'],
  ['one line', 'x'.repeat(1_000_000), 1, `1\t${'x'.repeat(2_000)}… [the line has 120.0 MB]`],
])('a large file of %s is read without loading it', async (_, block, from, expected) => {
  const { cwd, call } = await workspace();
  const file = await open(join(cwd, 'large.log'), 'w');
  for (let index = 0; index < 120; index++) await file.write(block);
  await file.write('the end\n');
  await file.close();

  let output = '';
  const growth = await memoryGrowthDuring(async () => {
    ({ output } = await call(read, { path: 'large.log', from }));
  });
  expect(output).toBe(expected);
  expect(growth.all).toBeLessThan(64_000_000);
});

test('a pipe in the workspace does not block', async () => {
  const { cwd, call } = await workspace();
  runSync('mkfifo', ['pipe'], { cwd });
  expect((await call(read, { path: 'pipe' })).output).toBe('pipe is not a regular file');
});

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

test.each([
  ['image/png', PNG],
  ['image/jpeg', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16])],
  ['image/gif', Buffer.from('GIF89a\x01\0\x01\0', 'latin1')],
  ['image/webp', Buffer.from('RIFF\x1a\0\0\0WEBPVP8L', 'latin1')],
])('an image is recognised by its content: %s', async (mediaType, bytes) => {
  expect(await callIn({ 'a.bin': bytes }, read, { path: 'a.bin' })).toEqual({
    output: `a.bin: ${mediaType}, ${bytes.length} bytes`,
    images: [{ type: 'image', mediaType, data: bytes.toString('base64') }],
  });
});

test('an image that no provider accepts is described', async () => {
  const bytes = Buffer.concat([PNG, Buffer.alloc(4_000_000)]);
  expect(await callIn({ 'a.png': bytes }, read, { path: 'a.png' })).toEqual({
    output: 'a.png: image/png, 4.0 MB: too large, at most 3.9 MB',
    isError: true,
  });
});

test('list shows names in order, folders and links marked', async () => {
  const { cwd, call } = await workspace({ 'b.txt': '', 'a/x': '', '.hidden': '' });
  await mkdir(join(cwd, 'empty'));
  await symlink('b.txt', join(cwd, 'link'));
  expect(await call(list, {})).toEqual({ output: '.hidden\na/\nb.txt\nempty/\nlink -> b.txt' });
  expect(await call(list, { path: 'a' })).toEqual({ output: 'x' });
  expect(await call(list, { path: 'empty' })).toEqual({ output: '(empty folder)' });
});

test('list explains a path that is not a folder', async () => {
  const { call } = await workspace({ 'src/a': '' });
  expect(await call(list, { path: 'src/a' })).toEqual({ output: 'src/a is a file: use read', isError: true });
  expect(await call(list, { path: 'srcc' })).toEqual({
    output: 'srcc does not exist: did you mean src?',
    isError: true,
  });
});

test('list is bounded', async () => {
  const { cwd, call } = await workspace();
  for (let index = 0; index < 510; index++) await writeFile(join(cwd, `${index}`), '');
  const lines = (await call(list, {})).output.split('\n');
  expect(lines).toHaveLength(501);
  expect(lines.at(-1)).toBe('[10 more]');
});
