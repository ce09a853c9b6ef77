// Paths from a model: each is inside the workspace or refused.

import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { oneFileChangeAtATime, toolPathInside, tidyToolPath } from '@drover/core/tools/files/paths';
import { glob } from '@drover/core/tools/glob';
import { grep } from '@drover/core/tools/grep';
import { list } from '@drover/core/tools/list';
import { read } from '@drover/core/tools/read';
import { edit } from '@drover/core/tools/edit';
import { write } from '@drover/core/tools/write';
import { expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { workspace } from '../../support/workspace.ts';

// A workspace next to a secret, with every kind of link to it.
async function besideSecret() {
  const space = await workspace({ 'inner/kept.txt': 'kept' });
  const { cwd } = space;
  const outside = join(cwd, '..', 'outside');
  await mkdir(outside);
  await writeFile(join(outside, 'secret.txt'), 'secret');
  await symlink('../outside/secret.txt', join(cwd, 'link-to-file'));
  await symlink(outside, join(cwd, 'link-to-folder'));
  await symlink('../../outside', join(cwd, 'inner', 'deep-link'));
  await symlink('link-to-folder', join(cwd, 'link-to-link'));
  await symlink('../outside/not-yet.txt', join(cwd, 'dangling'));
  await symlink('loop-b', join(cwd, 'loop-a'));
  await symlink('loop-a', join(cwd, 'loop-b'));
  await symlink('inner', join(cwd, 'link-inside'));
  await symlink('.git', join(cwd, 'link-to-git'));
  await mkdir(join(cwd, '.git', 'hooks'), { recursive: true });
  return { ...space, outside };
}

const ESCAPES = [
  '../outside/secret.txt',
  'inner/../../outside/secret.txt',
  'link-to-file',
  'link-to-folder/secret.txt',
  'link-to-link/secret.txt',
  'inner/deep-link/secret.txt',
  'link-to-folder/../link-to-folder/secret.txt',
  '/etc/passwd',
  '~/secret.txt',
  '~',
  '..',
  '/',
];

proves('files.inside', 'no path or link leads a file tool out of the workspace', async () => {
  const { call, outside } = await besideSecret();
  for (const path of ESCAPES) {
    const refused = { output: `${path} is outside the workspace`, isError: true };
    expect(await call(read, { path })).toEqual(refused);
    expect(await call(list, { path })).toEqual(refused);
    expect(await call(glob, { pattern: '*', path })).toEqual(refused);
    expect(await call(grep, { pattern: 'secret', path })).toEqual(refused);
    expect(await call(write, { path, content: 'x' })).toEqual(refused);
    expect(await call(edit, { path, old: 'secret', new: 'x' })).toEqual(refused);
  }
  expect(await readFile(join(outside, 'secret.txt'), 'utf8')).toBe('secret');
});

proves('files.inside', 'a new file cannot be created outside either', async () => {
  const { call, outside } = await besideSecret();
  for (const path of [
    'dangling',
    'link-to-folder/new.txt',
    'link-to-folder/a/b/new.txt',
    '../outside/new.txt',
    '../new',
  ]) {
    const { output } = await call(write, { path, content: 'x' });
    expect(output).toBe(`${path} is outside the workspace`);
  }
  expect((await call(list, {})).output).not.toContain('new');
  await expect(readFile(join(outside, 'not-yet.txt'))).rejects.toThrow('ENOENT');
});

test('a search does not follow links', async () => {
  const { call } = await besideSecret();
  expect((await call(grep, { pattern: 'secret|kept' })).output).toBe('inner/kept.txt:1:kept');
  expect((await call(glob, { pattern: '*.txt' })).output).toBe('inner/kept.txt');
});

test('a link that stays inside is followed, and stays a link', async () => {
  const { call, cwd } = await besideSecret();
  expect((await call(read, { path: 'link-inside/kept.txt' })).output).toBe('1\tkept');
  expect((await call(write, { path: 'link-inside/kept.txt', content: 'changed\n' })).output).toBe(
    'updated inner/kept.txt (+1 -1)',
  );
  expect(await toolPathInside(cwd, 'link-inside')).toEqual({ real: join(cwd, 'inner'), shown: 'inner' });
});

test('absolute paths into the workspace are accepted', async () => {
  const { call, cwd } = await besideSecret();
  expect((await call(read, { path: join(cwd, 'inner/kept.txt') })).output).toBe('1\tkept');
});

test.each(['.git/config', '.git/hooks/pre-commit', '.GIT/config', 'link-to-git/config', 'inner/.git/config', '.git'])(
  'nothing is written to %s',
  async (path) => {
    const { call } = await besideSecret();
    const { output } = await call(write, { path, content: 'x' });
    expect(output).toBe(`${path} is in a .git folder, which is not written by hand: use git`);
  },
);

test.each([
  ['loop-a', 'loop-a is a loop of symlinks'],
  ['loop-a/x', 'loop-a/x is a loop of symlinks'],
  ['inner/kept.txt/x', 'inner/kept.txt/x has a file where a folder is needed'],
  ['x'.repeat(300), `${'x'.repeat(300)} is too long a name`],
  [' ', 'the path is empty'],
])('an impossible path is refused: %s', async (path, output) => {
  const { call } = await besideSecret();
  expect(await call(read, { path })).toEqual({ output, isError: true });
  expect(await call(write, { path, content: '' })).toEqual({ output, isError: true });
});

test('the whole of a long output can be read, though it is outside', async () => {
  const { call, outputFolder } = await besideSecret();
  await mkdir(outputFolder);
  await writeFile(join(outputFolder, 'call_1.txt'), 'kept\n');
  const path = join(outputFolder, 'call_1.txt');
  expect((await call(read, { path })).output).toBe('1\tkept');
  expect((await call(grep, { pattern: 'kept', path })).output).toBe(`${path}:1:kept`);
  expect((await call(write, { path, content: 'x' })).output).toBe(`${path} is outside the workspace`);
});

test('one path has one spelling', () => {
  expect(['a/b', './a/b', 'a//b/', 'a/c/../b', 'a/./b'].map(tidyToolPath)).toEqual(Array(5).fill('a/b'));
  expect(['.', './', 'a/..'].map(tidyToolPath)).toEqual(['.', '.', '.']);
  expect(write.touches({ path: './a/../b.txt', content: '' })).toEqual(['b.txt']);
  expect(edit.subject({ path: './a/../b.txt', old: '', new: '' })).toBe('b.txt');
});

test('operations on one file run in sequence, even if some fail', async () => {
  const order: string[] = [];
  const work = (name: string, ms: number) => async () => {
    order.push(`${name} starts`);
    await new Promise((resolve) => setTimeout(resolve, ms));
    order.push(`${name} ends`);
    if (name === 'a') throw new Error(name);
    return name;
  };
  const results = await Promise.allSettled([
    oneFileChangeAtATime('/x', work('a', 30)),
    oneFileChangeAtATime('/x', work('b', 1)),
    oneFileChangeAtATime('/y', work('c', 1)),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(order).toEqual(['a starts', 'c starts', 'c ends', 'a ends', 'b starts', 'b ends']);
});
