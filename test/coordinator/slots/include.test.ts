// Ignored files that `.drover/include` copies into a workspace.

import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  contents,
  type Files,
  gitAs,
  order,
  take,
  type UserRepository,
  userRepository,
  writeFiles,
} from '../user-repository.ts';

async function including(lines: string, ignored: Files): Promise<UserRepository> {
  const user = await userRepository({
    '.gitignore': 'node_modules/\n*.local\n.env*\n/.drover/\n/conf/secret\n',
    'src/a.ts': 'a',
    'conf/open': 'x',
  });
  await user.write({ '.drover/include': lines, ...ignored });
  return user;
}

test('ignored files are copied, folders linked on request, and others stay behind', async () => {
  const user = await including('# local settings\n\n.env.example\nsrc/**/*.local\n/node_modules/  link\n', {
    '.env.example': 'KEY=',
    '.env': 'KEY=secret',
    'src/deep/x.local': 'x',
    'y.local': 'y',
    'node_modules/m/index.js': 'm',
  });
  const slots = await user.slots();
  const { path } = await take(slots, (await user.open()).head);
  expect(contents(path)).toEqual({
    '.env.example': '644 KEY=',
    '.gitignore': expect.any(String),
    'conf/': '755',
    'conf/open': '644 x',
    node_modules: `link to ${user.top}/node_modules`,
    'src/': '755',
    'src/a.ts': '644 a',
    'src/deep/': '755',
    'src/deep/x.local': '644 x',
  });
  expect(readFileSync(join(path, 'node_modules/m/index.js'), 'utf8')).toBe('m');
  expect(await slots.inclusion()).toEqual({
    included: [
      { path: '.env.example', how: 'copy' },
      { path: 'src/deep/x.local', how: 'copy' },
      { path: 'node_modules', how: 'link' },
    ],
    leftOut: [],
  });
});

test('a path inside an included folder is not included twice, at any depth', async () => {
  const user = await including('conf/secret/a/b/deep\nconf/secret/near\nconf/secret link\nx.local\n', {
    'conf/secret/near': 'n',
    'conf/secret/a/b/deep': 'd',
    'x.local': 'x',
  });
  const slots = await user.slots();
  expect(await slots.inclusion()).toEqual({
    included: [
      { path: 'conf/secret', how: 'link' },
      { path: 'x.local', how: 'copy' },
    ],
    leftOut: [],
  });
  const { path } = await take(slots, (await user.open()).head);
  expect(readlinkSync(join(path, 'conf/secret'))).toBe(join(user.top, 'conf/secret'));
});

test('included files are not committed, whatever the worker does to them', async () => {
  const user = await including('.env.example\nnode_modules link\n', { '.env.example': '1', 'node_modules/m.js': 'm' });
  const slots = await user.slots();
  const { path, commit } = await take(slots, (await user.open()).head);
  expect(gitAs(path, user.env, ['status', '--porcelain'])).toBe('');
  expect(await commit(order('drover/run_1/task'))).toBeUndefined();
  await writeFiles(path, { '.gitignore': '!.env.example\n!node_modules\n', '.env.example': 'changed', b: 'b' });
  expect((await commit(order('drover/run_1/task')))?.files).toEqual(['.gitignore', 'b']);
});

test('every task gets its own copy, and a link is only unlinked', async () => {
  const user = await including('.env.example\nnode_modules link\n', { '.env.example': '1', 'node_modules/m.js': 'm' });
  const { head } = await user.open();
  const slots = await user.slots();
  const first = await take(slots, head);
  await writeFiles(first.path, { '.env.example': 'changed by a worker' });
  await first.release();
  await user.write({ '.env.example': 'changed by the user' });
  const second = await take(slots, head, { task: 'second' });
  expect(readFileSync(join(second.path, '.env.example'), 'utf8')).toBe('changed by the user');
  expect(readlinkSync(join(second.path, 'node_modules'))).toBe(join(user.top, 'node_modules'));
  expect(readFileSync(join(user.top, 'node_modules/m.js'), 'utf8')).toBe('m');
});

test('tracked files, unignored files and links are skipped, with a note', async () => {
  const user = await including('src/a.ts\nnew\n*.local\nout/*\n', { new: 'x', 'real.local': 'x' });
  const outside = join(user.folder, 'outside');
  await writeFiles(outside, { 'x.local': 'x' });
  symlinkSync(join(outside, 'x.local'), join(user.top, 'linked.local'));
  symlinkSync(outside, join(user.top, 'out'));
  const slots = await user.slots();
  expect(await slots.inclusion()).toEqual({
    included: [{ path: 'real.local', how: 'copy' }],
    leftOut: [
      'linked.local is a link',
      'out/* is behind a link that leads out of the repository',
      'src/a.ts is not ignored by git',
      'new is not ignored by git',
    ],
  });
});

test('nothing is written through a link that a commit puts in place of a folder', async () => {
  const user = await including('conf/secret\n', { 'conf/secret': 'secret' });
  const outside = join(user.folder, 'outside');
  mkdirSync(outside);
  const slots = await user.slots();
  const first = await take(slots, (await user.open()).head);
  rmSync(join(first.path, 'conf'), { recursive: true });
  symlinkSync(outside, join(first.path, 'conf'));
  const made = await first.commit(order('drover/run_1/task'));
  const second = await take(slots, made?.commit ?? '', { task: 'second' });
  expect(lstatSync(join(second.path, 'conf')).isSymbolicLink()).toBe(true);
  expect(existsSync(join(outside, 'secret'))).toBe(false);
});

test('a folder too large to copy stays behind, with the alternative', async () => {
  const user = await including('node_modules\n', {});
  mkdirSync(join(user.top, 'node_modules'));
  // The file is sparse, so it takes no space.
  writeFileSync(join(user.top, 'node_modules/large'), '');
  truncateSync(join(user.top, 'node_modules/large'), 300 * 1024 * 1024);
  const slots = await user.slots();
  expect(await slots.inclusion()).toEqual({
    included: [],
    leftOut: ['node_modules is too large to be copied: put "link" behind it'],
  });
});

test.each(['../outside', 'src/../../x', '.git/config', '!x', '/'])('the line %j is refused', async (line) => {
  const user = await including(`ok\n${line}\n`, {});
  await expect(user.slots()).rejects.toThrow('.drover/include:2: ');
});
