// edit: finds a quoted passage exactly or with tolerant white space, and never the wrong one.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { edit } from '@drover/core/tools/edit';
import { expect, test } from 'vitest';
import { workspace } from '../../support/workspace.ts';

async function edited(before: string | Buffer, passage: { old: string; new: string; all?: boolean }) {
  const { cwd, call } = await workspace({ 'a.ts': before });
  const { output, isError } = await call(edit, { path: 'a.ts', ...passage });
  const after = await readFile(join(cwd, 'a.ts'));
  return isError === true ? { refused: output, unchanged: after.equals(Buffer.from(before)) } : after.toString();
}

test('an edit returns its diff, in output and details', async () => {
  const { call } = await workspace({ 'a.ts': 'one\ntwo\nthree\n' });
  const diff = '--- a/a.ts\n+++ b/a.ts\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three';
  expect(await call(edit, { path: 'a.ts', old: 'two', new: '2' })).toEqual({
    output: `edited a.ts (+1 -1)\n${diff}`,
    details: { path: 'a.ts', diff, added: 1, removed: 1 },
  });
});

test.each([
  ['within a line', 'let a = 1;\n', { old: 'a = 1', new: 'b = 2' }, 'let b = 2;\n'],
  ['over lines', 'a\nb\nc\n', { old: 'a\nb\n', new: 'x\n' }, 'x\nc\n'],
  ['away', 'a\nb\nc\n', { old: 'b\n', new: '' }, 'a\nc\n'],
  ['everywhere', 'a b a\na\n', { old: 'a', new: 'x', all: true }, 'x b x\nx\n'],
  ['with signs that mean something elsewhere', 'f($1)\n', { old: 'f($1)', new: '$& $1 $$' }, '$& $1 $$\n'],
  ['at the very end', 'a\nb', { old: 'b', new: 'c' }, 'a\nc'],
])('an exact passage is replaced %s', async (_, before, passage, after) => {
  expect(await edited(before, passage)).toBe(after);
});

test.each([
  ['Windows line ends', 'a\r\nb\r\nc\r\n', { old: 'a\nb', new: 'x\ny\nz' }, 'x\r\ny\r\nz\r\nc\r\n'],
  ['Windows line ends on both sides', 'a\r\nb\r\n', { old: 'a\r\nb', new: 'x\r\ny' }, 'x\r\ny\r\n'],
  ['mixed line ends', 'a\nb\r\nc\nd\r\n', { old: 'c', new: 'x' }, 'a\nb\r\nx\nd\r\n'],
  ['mixed line ends in the passage', 'a\nb\r\nc\n', { old: 'b\nc', new: 'x\ny' }, 'a\nx\r\ny\n'],
  ['a line end left alone', 'a\r\nb\r\n', { old: 'a', new: 'x' }, 'x\r\nb\r\n'],
  ['a line taken out', 'a\r\nb\r\nc\r\n', { old: 'b\n', new: '' }, 'a\r\nc\r\n'],
  ['a byte order mark', '\uFEFFa\nb\n', { old: 'a\n', new: 'x\n' }, '\uFEFFx\nb\n'],
])('%s stay as they are', async (_, before, passage, after) => {
  expect(await edited(before, passage)).toBe(after);
});

test.each([
  ['trailing blanks', 'if (a) {  \n  b();\n}\n', { old: 'if (a) {\n  b();\n}', new: 'c();' }, 'c();\n'],
  [
    'indentation',
    'class A {\n    f() {\n        g();\n    }\n}\n',
    { old: 'f() {\n    g();\n}', new: 'f() {\n    h();\n    if (x) {\n        i();\n    }\n}' },
    'class A {\n    f() {\n        h();\n        if (x) {\n            i();\n        }\n    }\n}\n',
  ],
  [
    'tabs for blanks',
    '\tf() {\n\t\tg();\n\t}\n',
    { old: '  f() {\n    g();\n  }\n', new: '  f() {\n    h();\n  }\n' },
    '\tf() {\n\t\th();\n\t}\n',
  ],
  ['blanks between words', 'a   =  1;\nb = 2;\n', { old: 'a = 1;', new: 'a = 3;' }, 'a = 3;\nb = 2;\n'],
  ['blank lines with blanks', 'a\n   \nb\n', { old: 'a\n\nb', new: 'c' }, 'c\n'],
  ['Windows line ends as well', '  a();\r\n  b();\r\nc\r\n', { old: 'a();\nb();\n', new: 'd();\n' }, '  d();\r\nc\r\n'],
  ['a last line without an end', 'x\n  a', { old: 'a ', new: 'b' }, 'x\n  b'],
])('a passage is found despite %s', async (_, before, passage, after) => {
  expect(await edited(before, passage)).toBe(after);
});

test('an edit that ignored white space says so', async () => {
  const { call } = await workspace({ 'a.ts': '\ta\n' });
  expect((await call(edit, { path: 'a.ts', old: ' a', new: ' b' })).output).toMatch(
    /^edited a\.ts \(\+1 -1, found with different white space\)\n/,
  );
});

test('an exact passage is preferred to a tolerant one', async () => {
  expect(await edited('  a\na\n', { old: '\na\n', new: '\nb\n' })).toBe('  a\nb\n');
});

test('the same tolerant passage twice can be replaced everywhere', async () => {
  expect(await edited('  a;\nx\n\ta;\n', { old: 'a; ', new: 'b;', all: true })).toBe('  b;\nx\n\tb;\n');
});

const many = 'a\n'.repeat(30);

test.each<[string, string | Buffer, { old: string; new: string }, string]>([
  [
    'an ambiguous passage',
    'a\nb\na\n',
    { old: 'a', new: 'x' },
    'old occurs 2 times in a.ts, at lines 1, 3: add lines around it, or set all',
  ],
  [
    'a forgiven passage that is ambiguous',
    ' a;\nb\n\ta;\n',
    { old: 'a; ', new: 'x' },
    'old occurs 2 times in a.ts, at lines 1, 3: add lines around it, or set all',
  ],
  [
    'a passage that is everywhere',
    many,
    { old: 'a', new: 'x' },
    'old occurs 30 times in a.ts, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …: add lines around it, or set all',
  ],
  ['a passage that is not there', 'a\n', { old: 'zzz', new: 'x' }, 'old was not found in a.ts: read it again'],
  [
    'a passage half of which is there',
    'q\n  a();\nc();\n',
    { old: 'a();\nb();', new: 'x' },
    'old was not found in a.ts: its first line stands at line 2, but what follows differs',
  ],
  ['an empty passage', 'a\n', { old: '', new: 'x' }, 'old is empty: to make or replace a whole file, use write'],
  ['white space that is not there', 'a\n', { old: '   ', new: 'x' }, 'old was not found in a.ts: read it again'],
  ['no change', 'a\n', { old: 'a', new: 'a' }, 'old and new are the same'],
  ['binary data', Buffer.from([0, 1]), { old: 'a', new: 'b' }, 'a.ts is not UTF-8 text (2 bytes)'],
  ['another encoding', Buffer.from('caf\xe9', 'latin1'), { old: 'caf', new: 'b' }, 'a.ts is not UTF-8 text (4 bytes)'],
])('%s is refused, and the file left alone', async (_, before, passage, refused) => {
  expect(await edited(before, passage)).toEqual({ refused, unchanged: true });
});

test('a missing file is reported with similar names', async () => {
  const { call } = await workspace({ 'src/index.ts': '' });
  expect(await call(edit, { path: 'src/indx.ts', old: 'a', new: 'b' })).toEqual({
    output: 'src/indx.ts does not exist: did you mean src/index.ts?',
    isError: true,
  });
});

test.each([
  ['exact', 'x\n', 'x', 'y'],
  ['tolerant', '  x z\n', 'x  z', 'y'],
])('more %s matches than one edit replaces are refused, not replaced in part', async (_, line, old, new_) => {
  expect(await edited(line.repeat(10_001), { old, new: new_, all: true })).toEqual({
    refused: expect.stringMatching(/^old occurs 10000 times or more in a\.ts, .*use a command$/) as string,
    unchanged: true,
  });
});

test('concurrent edits of one file are all applied', async () => {
  const words = Array.from({ length: 20 }, (_, index) => `word${String(index).padStart(2, '0')}`);
  const { cwd, call } = await workspace({ 'a.ts': words.join('\n') });
  await Promise.all(words.map((word) => call(edit, { path: 'a.ts', old: word, new: word.toUpperCase() })));
  expect(await readFile(join(cwd, 'a.ts'), 'utf8')).toBe(words.join('\n').toUpperCase());
});

test('a large file is edited at once', async () => {
  const lines = Array.from({ length: 200_000 }, (_, index) => `line ${index}`);
  const { call } = await workspace({ 'a.ts': lines.join('\r\n') });
  expect((await call(edit, { path: 'a.ts', old: '  line 150000\n', new: '  here\n' })).output).toBe(
    [
      'edited a.ts (+1 -1, found with different white space)',
      '--- a/a.ts',
      '+++ b/a.ts',
      '@@ -149998,7 +149998,7 @@',
      ' line 149997',
      ' line 149998',
      ' line 149999',
      '-line 150000',
      '+here',
      ' line 150001',
      ' line 150002',
      ' line 150003',
    ].join('\n'),
  );
});
