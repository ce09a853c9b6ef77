// The page's patch parser: files, lines and numbers, for any names and content.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Patch, parsePagePatch } from '@drover/server/page/patch';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/workspace.ts';

const told = ({ files }: Patch): readonly string[] =>
  files.flatMap(({ path, what, added, removed, lines }) => [
    `${path}: ${what} +${added} -${removed}`,
    ...lines.map(({ kind, text, before = '', after = '' }) => `  ${before}|${after}|${kind}|${text}`),
  ]);

/** The output of `git diff` between two sets of files. */
async function patchOf(before: Readonly<Record<string, string>>, change: (folder: string) => void): Promise<string> {
  const folder = await temporaryFolder();
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], {
      cwd: folder,
      encoding: 'utf8',
    });
  git('init', '-q');
  for (const [path, content] of Object.entries(before)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  git('add', '-A');
  git('commit', '-q', '--allow-empty', '-m', 'before');
  change(folder);
  git('add', '-A');
  return git('diff', '--cached', '-M');
}

test('changed, new, deleted, renamed and binary files, each line with its numbers', async () => {
  const before = { 'a.txt': 'one\ntwo\nthree\n', 'gone.txt': 'x\n', 'old name.txt': 'same\n'.repeat(5), 'b.bin': '\0' };
  const patch = await patchOf(before, (folder) => {
    writeFileSync(join(folder, 'a.txt'), 'one\n2\nthree');
    rmSync(join(folder, 'gone.txt'));
    renameSync(join(folder, 'old name.txt'), join(folder, 'new name.txt'));
    writeFileSync(join(folder, 'b.bin'), '\0\0');
    writeFileSync(join(folder, 'c.txt'), 'c\n');
  });
  expect(told(parsePagePatch(patch))).toEqual([
    'a.txt: changed +2 -2',
    '  ||place|line 1',
    '  1|1|same|one',
    '  2||removed|two',
    '  3||removed|three',
    '  |2|added|2',
    '  |3|added|three',
    '  ||note|No newline at end of file',
    'b.bin: binary +0 -0',
    'c.txt: new +1 -0',
    '  ||place|line 1',
    '  |1|added|c',
    'gone.txt: deleted +0 -1',
    '  ||place|line 0',
    '  1||removed|x',
    'new name.txt: renamed +0 -0',
  ]);
});

test('quoted names of git are read, even if no line repeats them', async () => {
  const names = ['käse "alt".txt', 'a b/c b/d.txt', 'tab\there.txt', 'back\\slash'];
  const patch = await patchOf(Object.fromEntries(names.map((name) => [name, ''])), (folder) => {
    for (const name of names) chmodSync(join(folder, name), 0o755);
  });
  expect(
    parsePagePatch(patch)
      .files.map(({ path }) => path)
      .toSorted(),
  ).toEqual(names.toSorted());
});

test('file content stays content, whatever it looks like', async () => {
  const lines = ['diff --git a/x b/x', '@@ -1 +1 @@', '--- a/x', '+++ b/x', '\\ No newline'];
  const patch = await patchOf({ 'x.patch': '-- old\n' }, (folder) =>
    writeFileSync(join(folder, 'x.patch'), `${lines.join('\n')}\n`),
  );
  expect(told(parsePagePatch(patch))).toEqual([
    'x.patch: changed +5 -1',
    '  ||place|line 1',
    '  1||removed|-- old',
    ...lines.map((line, at) => `  |${at + 1}|added|${line}`),
  ]);
});

test('text that is not a patch is shown by line, and long text is cut and counted', () => {
  expect(told(parsePagePatch('cannot be shown\nsorry\n'))).toEqual([
    ': changed +0 -0',
    '  ||note|cannot be shown',
    '  ||note|sorry',
  ]);
  expect(parsePagePatch('').files).toEqual([]);
  const long = parsePagePatch('x\n'.repeat(20_050));
  expect([long.files[0]?.lines.length, long.leftOut]).toEqual([20_000, 50]);
});
