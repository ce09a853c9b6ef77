// Links in folders that `.drover/include` copies: those inside the repository work, the others stay behind.

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { findSlotIncludes } from '@drover/coordinator/slots/include';
import { expect, test } from 'vitest';
import { makePipe } from '../../support/data/odd-files.ts';
import { contents, type Files, take, type UserRepository, userRepository, writeFiles } from '../user-repository.ts';

async function including(lines: string, ignored: Files): Promise<UserRepository> {
  const user = await userRepository({
    '.gitignore': 'node_modules/\n*.local\n/.drover/\n',
    'packages/own/a.js': 'own',
  });
  await user.write({ '.drover/include': lines, ...ignored });
  return user;
}

/** Makes each link, by its path in the repository. */
function link(user: UserRepository, links: Readonly<Record<string, string>>): void {
  for (const [path, target] of Object.entries(links)) {
    mkdirSync(dirname(join(user.top, path)), { recursive: true });
    symlinkSync(target, join(user.top, path));
  }
}

test('links inside the repository are copied and work in the workspace', async () => {
  const user = await including('node_modules\n', { 'node_modules/.pnpm/m@1/node_modules/m/cli.js': 'm' });
  link(user, {
    'node_modules/m': '.pnpm/m@1/node_modules/m',
    'node_modules/.bin/m': '../m/cli.js',
    'node_modules/own': '../packages/own',
    'node_modules/gone': 'nothing',
  });
  const slots = await user.slots();
  const { path } = await take(slots, (await user.open()).head);
  expect((await slots.inclusion()).leftOut).toEqual([]);
  expect(contents(join(path, 'node_modules'))).toMatchObject({
    m: 'link to .pnpm/m@1/node_modules/m',
    '.bin/m': 'link to ../m/cli.js',
    own: 'link to ../packages/own',
    gone: 'link to nothing',
  });
  expect(readFileSync(join(path, 'node_modules/.bin/m'), 'utf8')).toBe('m');
  expect(readFileSync(join(path, 'node_modules/own/a.js'), 'utf8')).toBe('own');
});

test('links that lead out of the repository stay behind, each with a sentence', async () => {
  const user = await including('node_modules\n', { 'node_modules/m/index.js': 'm' });
  await writeFiles(join(user.folder, 'outside'), { secret: 'secret' });
  link(user, {
    'node_modules/inner': 'm',
    'node_modules/above': '../..',
    'node_modules/beside': '../../outside/secret',
    'node_modules/m/etc': '/etc',
    'node_modules/passwd': '/etc/passwd',
    'node_modules/absolute': join(user.top, 'packages/own'),
    'node_modules/loop': 'loop',
    // By its text this path stays inside, but a link on the way leads out.
    'node_modules/chain': '../door/secret',
    door: '../outside',
  });
  await makePipe(join(user.top, 'node_modules/pipe'));
  const slots = await user.slots();
  const { path } = await take(slots, (await user.open()).head);
  expect(await slots.inclusion()).toEqual({
    included: [{ path: 'node_modules', how: 'copy' }],
    leftOut: [
      'node_modules/above is a link that leads out of the repository',
      'node_modules/absolute is an absolute link, which leads back into your checkout: make it relative',
      'node_modules/beside is a link that leads out of the repository',
      'node_modules/chain is a link that leads out of the repository',
      'node_modules/loop is a loop of links',
      'node_modules/m/etc is a link that leads out of the repository',
      'node_modules/passwd is a link that leads out of the repository',
      'node_modules/pipe is neither a file nor a folder',
    ],
  });
  expect(contents(join(path, 'node_modules'))).toEqual({ inner: 'link to m', 'm/': '755', 'm/index.js': '644 m' });
});

test('a link that changes after its check stays behind too', async () => {
  const user = await including('node_modules\n', { 'node_modules/m/index.js': 'm' });
  const slots = await user.slots();
  expect((await slots.inclusion()).leftOut).toEqual([]);
  link(user, { 'node_modules/passwd': '/etc/passwd' });
  const { path } = await take(slots, (await user.open()).head);
  expect(contents(join(path, 'node_modules'))).toEqual({ 'm/': '755', 'm/index.js': '644 m' });
});

test('no folder outside the repository is listed through a link', async () => {
  const user = await including('out/**\nout/etc/*\n', {});
  link(user, { out: '/' });
  expect(await (await user.slots()).inclusion()).toEqual({
    included: [],
    leftOut: [
      'out/** is behind a link that leads out of the repository',
      'out/etc/* is behind a link that leads out of the repository',
    ],
  });
}, 10_000);

test('a folder with more than 10,000 links is not copied', async () => {
  const user = await including('node_modules\n', { 'node_modules/m': 'm' });
  for (let at = 0; at <= 10_000; at++) symlinkSync('m', join(user.top, 'node_modules', `l${at}`));
  expect(await (await user.slots()).inclusion()).toEqual({
    included: [],
    leftOut: ['node_modules is too large to be copied: put "link" behind it'],
  });
});

test('a folder with more than 20,000 entries is not copied', async () => {
  const user = await including('node_modules\n', { 'node_modules/m': 'm' });
  for (let at = 0; at < 20_000; at++) writeFileSync(join(user.top, 'node_modules', `f${at}`), '');
  expect(await (await user.slots()).inclusion()).toEqual({
    included: [],
    leftOut: ['node_modules is too large to be copied: put "link" behind it'],
  });
});

test('of many skipped links the first 50 are named', async () => {
  const user = await including('node_modules\n', { 'node_modules/m': 'm' });
  for (let at = 100; at < 200; at++) symlinkSync('/etc', join(user.top, 'node_modules', `l${at}`));
  const { leftOut } = await (await user.slots()).inclusion();
  expect([leftOut.length, leftOut[49], leftOut[50]]).toEqual([
    51,
    'node_modules/l149 is a link that leads out of the repository',
    '50 more paths',
  ]);
});

test('globs that visit too many entries are refused', async () => {
  const files = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`many/${at}.local`, '']));
  const user = await including('', files);
  const source = { repository: await user.open(), env: user.env };
  const lines = [{ pattern: '**/5.local', how: 'copy' as const }];
  expect((await findSlotIncludes(lines, source)).included).toEqual([{ path: 'many/5.local', how: 'copy' }]);
  await expect(findSlotIncludes(lines, { ...source, entriesMax: 50 })).rejects.toThrow(
    new UsageError('.drover/include: **/5.local looks at more than 50 entries: name a folder instead'),
  );
});
