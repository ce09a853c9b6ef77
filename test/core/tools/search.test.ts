// glob and grep: files by name and lines by content, respecting ignore files.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json } from '@drover/protocol/json';
import { glob } from '@drover/core/tools/glob';
import { grep } from '@drover/core/tools/grep';
import { runTool, type Tool } from '@drover/core/tools/tool';
import { runSync } from '../../support/process/run-sync.ts';
import { expect, test } from 'vitest';
import { workspace } from '../../support/workspace.ts';

const PROJECT = {
  '.gitignore': 'node_modules\n*.log\n',
  '.git/config.ts': 'needle',
  '.github/ci.yml': 'needle: 1\n',
  'a.ts': 'no\nneedle one\nno\n',
  'a.log': 'needle',
  '-x.ts': 'dash',
  'src/b.ts': 'Needle two\n',
  'src/deep/c.test.ts': 'needle three\n',
  'src/deep/d.js': 'needle four\n',
  'node_modules/m/index.ts': 'needle',
};

test.each<[string, object, string]>([
  ['in any folder', { pattern: '*.ts' }, '-x.ts\na.ts\nsrc/b.ts\nsrc/deep/c.test.ts'],
  ['the same in other words', { pattern: '**/*.ts' }, '-x.ts\na.ts\nsrc/b.ts\nsrc/deep/c.test.ts'],
  ['from the top', { pattern: './src/*.ts' }, 'src/b.ts'],
  ['below a folder', { pattern: 'src/**/*.ts' }, 'src/b.ts\nsrc/deep/c.test.ts'],
  ['everything below a folder', { pattern: 'src/**' }, 'src/b.ts\nsrc/deep/c.test.ts\nsrc/deep/d.js'],
  ['of several kinds', { pattern: '*.{js,yml}' }, '.github/ci.yml\nsrc/deep/d.js'],
  ['in a folder', { pattern: '*.ts', path: 'src' }, 'src/b.ts\nsrc/deep/c.test.ts'],
  ['from the top of a folder', { pattern: 'deep/*', path: 'src' }, 'src/deep/c.test.ts\nsrc/deep/d.js'],
  ['by its whole name', { pattern: 'd.js' }, 'src/deep/d.js'],
  ['but not what is ignored', { pattern: '*.log' }, 'no files found'],
  ['not even where it is', { pattern: 'node_modules/**' }, 'no files found'],
])('glob finds files %s', async (_, args, output) => {
  const { call } = await workspace(PROJECT);
  expect(await call(glob, args as Json)).toEqual({ output });
});

test('paths ignored by the config are left out beside those of the project', async () => {
  const { context } = await workspace(PROJECT);
  const found = async (tool: Tool, args: object) => {
    const parsed = tool.parse(args as Json);
    if (!parsed.ok) throw new Error(parsed.problem);
    const there = { ...context(), ignore: ['deep', '*.yml'] };
    return (await runTool(tool, parsed.input, there)).output;
  };
  expect(await found(glob, { pattern: '**' })).toBe('-x.ts\n.gitignore\na.ts\nsrc/b.ts');
  expect(await found(grep, { pattern: 'needle' })).toBe('a.ts:2:needle one');
});

test.each<[string, object, string]>([
  [
    'everywhere',
    { pattern: 'needle' },
    '.github/ci.yml:1:needle: 1\na.ts:2:needle one\nsrc/deep/c.test.ts:1:needle three\nsrc/deep/d.js:1:needle four',
  ],
  ['by expression', { pattern: 'needle (o|t)\\w+$' }, 'a.ts:2:needle one\nsrc/deep/c.test.ts:1:needle three'],
  [
    'in any case',
    { pattern: 'NEEDLE t', ignoreCase: true },
    'src/b.ts:1:Needle two\nsrc/deep/c.test.ts:1:needle three',
  ],
  ['in files of a kind', { pattern: 'needle', glob: '*.ts' }, 'a.ts:2:needle one\nsrc/deep/c.test.ts:1:needle three'],
  ['in files below a folder', { pattern: 'needle', glob: 'src/**/*.js' }, 'src/deep/d.js:1:needle four'],
  ['in a folder', { pattern: 'needle', path: 'src/deep', glob: '*.js' }, 'src/deep/d.js:1:needle four'],
  ['in one file', { pattern: 'needle', path: 'a.ts' }, 'a.ts:2:needle one'],
  ['in one file of a name like an option', { pattern: 'dash', path: '-x.ts' }, '-x.ts:1:dash'],
  ['with lines around', { pattern: 'one', context: 1 }, 'a.ts-1-no\na.ts:2:needle one\na.ts-3-no'],
  ['that begin like an option', { pattern: '--files' }, 'no matches'],
  ['not in what is ignored', { pattern: 'needle$', glob: '*.log' }, 'no matches'],
])('grep finds lines %s', async (_, args, output) => {
  const { call } = await workspace(PROJECT);
  expect(await call(grep, args as Json)).toEqual({ output });
});

test('a broken expression is an error that says what is wrong', async () => {
  const { call } = await workspace(PROJECT);
  const { output, isError } = await call(grep, { pattern: 'a(b' });
  expect(isError).toBe(true);
  expect(output).toMatch(/^regex parse error:[^]*unclosed group$/);
});

test('a broken glob is an error that says what is wrong', async () => {
  const { call } = await workspace(PROJECT);
  const { output, isError } = await call(glob, { pattern: '[a' });
  expect(isError).toBe(true);
  expect(output).toContain('unclosed character class');
});

test('a missing path is an error', async () => {
  const { call } = await workspace(PROJECT);
  expect(await call(grep, { pattern: 'a', path: 'none' })).toEqual({ output: 'none does not exist', isError: true });
  expect(await call(glob, { pattern: 'a', path: 'srcs' })).toEqual({
    output: 'srcs does not exist: did you mean src?',
    isError: true,
  });
});

test('a search in a pipe is refused, since reading it could block', async () => {
  const { call, cwd } = await workspace(PROJECT);
  runSync('mkfifo', ['pipe'], { cwd });
  expect((await call(grep, { pattern: 'a', path: 'pipe' })).output).toBe('pipe is not a regular file');
});

test('grep is bounded in lines and in their length', async () => {
  const { call } = await workspace({ 'a.txt': 'x\n'.repeat(5_000), 'b.js': `x${'y'.repeat(1_000_000)}` });
  const lines = (await call(grep, { pattern: 'x' })).output.split('\n');
  expect(lines).toHaveLength(301);
  expect(lines.at(-1)).toBe('[more matches: narrow the search]');
  expect((await call(grep, { pattern: 'x', path: 'b.js' })).output).toMatch(
    /^b\.js:1:xy{299} \[\.\.\. omitted end of long line\]$/,
  );
});

test('glob is bounded, and says how many there are', async () => {
  const { cwd, call } = await workspace();
  await mkdir(join(cwd, 'many'));
  for (let index = 0; index < 520; index++) await writeFile(join(cwd, 'many', `${index}.txt`), '');
  const lines = (await call(glob, { pattern: '*.txt' })).output.split('\n');
  expect(lines).toHaveLength(501);
  expect(lines.at(-1)).toBe('[20 more: narrow the pattern]');
});

test('a search can be interrupted', async () => {
  const { call } = await workspace(PROJECT);
  const stop = new AbortController();
  stop.abort();
  const { isError } = await call(grep, { pattern: 'needle' }, stop.signal);
  expect(isError).toBe(true);
});
