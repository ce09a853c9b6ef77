// Small parts of the sandbox: limits, the copy of /etc, toolchains, seals, hints, and the start of a command.

import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { sandboxEtcFolder } from '@drover/sandbox/linux/etc';
import { sandboxHintsFor } from '@drover/sandbox/hints';
import { sandboxLimitsPrelude } from '@drover/sandbox/linux/limits';
import { sealSandboxPaths, unsealSandboxPaths } from '@drover/sandbox/seal';
import { confineScript } from '@drover/sandbox/sandbox';
import { findToolchains } from '@drover/sandbox/toolchains';
import { expect, test } from 'vitest';
import { POLICY } from '../support/sandbox/policy.ts';
import { temporary } from '../support/sandbox/box.ts';

test('the prelude sets every limit and closes inherited descriptors', () => {
  expect(sandboxLimitsPrelude(POLICY.system.limits)).toBe(
    '{ ulimit -u 64; ulimit -d 307200; ulimit -f 1024; ulimit -n 256; ulimit -t 60; ulimit -c 0; ' +
      'for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval "exec $fd>&-"; done; unset fd; } 2>/dev/null; ',
  );
});

test('a command starts in the sandbox’s places after joining its control groups', () => {
  const env = { PATH: '/usr/bin', HOME: '/elsewhere', TMPDIR: '/elsewhere', KEPT: 'yes' };
  const { file, args, env: inner, files, report } = confineScript({ ...POLICY, groups: ['/g/one', '/g/two'] }, env);
  expect({ file, files, report }).toEqual({ file: '/bin/sh', files: ['/s/filter'], report: true });
  expect(args.slice(2, 7)).toEqual(['drover', '/g/one', '/g/two', '--', '/usr/bin/bwrap']);
  expect(args.slice(-3, -1)).toEqual(['/bin/bash', '-c']);
  expect(args.at(-1)).toContain(sandboxLimitsPrelude(POLICY.system.limits));
  expect(inner).toMatchObject({
    PATH: '/usr/bin:/n/bin',
    HOME: '/h/person',
    TMPDIR: '/tmp',
    TMP: '/tmp',
    TEMP: '/tmp',
    KEPT: 'yes',
    TOOLS: '/h/person/.tools',
  });
});

function everyFile(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

test.runIf(existsSync('/etc/passwd'))(
  'the copy of /etc holds no password, no key and nothing that others may not read',
  () => {
    const folder = sandboxEtcFolder(temporary());
    expect(
      readdirSync(folder).filter((name) => /^(g?shadow-?|sudoers|ssh|cron|NetworkManager|docker)/.test(name)),
    ).toEqual([]);
    expect(readFileSync(join(folder, 'hosts'), 'utf8')).toBe('127.0.0.1 localhost drover\n::1 localhost drover\n');
    const secret = everyFile(folder).filter((path) => {
      const original = join('/etc', path.slice(folder.length));
      const isPrivate = existsSync(original) && (statSync(original).mode & 0o004) === 0;
      return isPrivate || /PRIVATE KEY-----/.test(readFileSync(path, 'latin1'));
    });
    expect(secret).toEqual([]);
  },
);

test('the copy of /etc is made once', () => {
  const state = temporary();
  const folder = sandboxEtcFolder(state);
  const { ino } = statSync(folder);
  expect([sandboxEtcFolder(state), statSync(sandboxEtcFolder(state)).ino, readdirSync(state).length]).toEqual([
    folder,
    ino,
    1,
  ]);
});

function person(): { readonly home: string; readonly tree: (...paths: readonly string[]) => void } {
  const home = join(temporary(), 'person');
  return { home, tree: (...paths) => paths.forEach((path) => void mkdirSync(join(home, path), { recursive: true })) };
}

test('HOME, a folder above it and folders with credentials are never a toolchain', () => {
  const { home, tree } = person();
  tree('bin', 'lib', '.cargo/bin', '.cargo/registry', '.local/bin', '.local/state', '.local/share/keyrings', 'go/bin');
  const above = join(home, '..');
  mkdirSync(join(above, 'bin'));
  mkdirSync(join(above, 'lib'));
  const PATH = [
    home,
    above,
    '/',
    'relative',
    join(home, 'none'),
    join(above, 'bin'),
    ...['bin', '.cargo/bin', '.local/bin', 'go/bin'].map((path) => join(home, path)),
  ].join(':');
  const { folders } = findToolchains({
    env: { PATH, JAVA_HOME: home, GOROOT: above, NVM_DIR: '/' },
    home,
    covered: ['/usr'],
  });
  expect([...folders].sort()).toEqual(
    [join(above, 'bin'), ...['.cargo/bin', '.local/bin', 'bin', 'go/bin'].map((path) => join(home, path))].sort(),
  );
});

test('an installation on PATH is shown whole, and a version manager with its variable', () => {
  const { home, tree } = person();
  tree('tools/node/bin', 'tools/node/lib', '.nvm/versions/bin', '.rustup', '.pyenv');
  const PATH = [join(home, 'tools/node/bin'), join(home, '.nvm/versions/bin')].join(':');
  expect(findToolchains({ env: { PATH }, home, covered: [] })).toEqual({
    folders: ['.rustup', '.nvm', 'tools/node', '.nvm/versions/bin'].map((path) => join(home, path)),
    env: { RUSTUP_HOME: join(home, '.rustup'), NVM_DIR: join(home, '.nvm') },
  });
});

test('libraries beside personal programs are shown with them', () => {
  const { home, tree } = person();
  tree(
    '.local/bin',
    '.local/lib/python3',
    '.local/share/pipx',
    '.local/share/keyrings',
    '.npm-global/bin',
    '.npm-global/lib',
  );
  const PATH = ['.local/bin', '.npm-global/bin'].map((path) => join(home, path)).join(':');
  const shown = ['.local/bin', '.local/lib', '.local/share/pipx', '.npm-global/bin', '.npm-global/lib'];
  expect(findToolchains({ env: { PATH }, home, covered: [] }).folders).toEqual(shown.map((path) => join(home, path)));
});

test('a link on the PATH that leads to HOME is not a toolchain', () => {
  const { home, tree } = person();
  tree('x');
  symlinkSync(home, join(home, '..', 'linked'));
  expect(findToolchains({ env: { PATH: join(home, '..', 'linked') }, home, covered: [] }).folders).toEqual([]);
});

test('a variable that names an unreadable folder adds no toolchain', () => {
  const { home } = person();
  const env = { PYENV_ROOT: `/${'x'.repeat(5_000)}`, PATH: `/${'y'.repeat(5_000)}` };
  expect(findToolchains({ env, home, covered: [] })).toEqual({ folders: [], env: {} });
});

test('placeholders stay until the last session that needs them has ended', () => {
  const folder = temporary();
  const [missing, present] = [join(folder, '.envrc'), join(folder, '.git')];
  mkdirSync(present);
  for (const holder of ['a', 'b', 'a']) sealSandboxPaths(holder, [missing, present]);
  unsealSandboxPaths('a');
  expect(lstatSync(missing).isDirectory()).toBe(true);
  unsealSandboxPaths('b');
  expect(readdirSync(folder)).toEqual(['.git']);
});

test('a placeholder that the user filled stays', () => {
  const folder = temporary();
  const path = join(folder, '.husky');
  sealSandboxPaths('a', [path]);
  writeFileSync(join(path, 'pre-commit'), 'mine');
  unsealSandboxPaths('a');
  expect(readdirSync(path)).toEqual(['pre-commit']);
});

test('a missing placeholder is not a failure', () => {
  const folder = temporary();
  const path = join(folder, 'x');
  sealSandboxPaths('a', [path]);
  rmdirSync(path);
  unsealSandboxPaths('a');
  unsealSandboxPaths('a');
  expect(readdirSync(folder)).toEqual([]);
});

const OFFLINE = 'the sandbox has no network; if the work needs it, the user can allow it with --net';

test.each([
  ['npm error request failed: getaddrinfo EAI_AGAIN packages.example.com', `${OFFLINE} packages.example.com`],
  ['curl: (6) Could not resolve host: packages.example.com', `${OFFLINE} packages.example.com`],
  ['dial tcp: lookup proxy.example.com on 1.1.1.1:53', `${OFFLINE} proxy.example.com`],
  ['Temporary failure in name resolution', `${OFFLINE} HOST`],
  ['drover: the sandbox does not allow a.example: it resolves to 10.0.0.1', `${OFFLINE} a.example`],
  [
    "touch: cannot touch '/usr/x': Read-only file system",
    '/usr/x is read-only in the sandbox; if the work needs it, the user can allow it with --writable PATH',
  ],
  [
    "Error: EROFS: read-only file system, open 'lib/x'",
    '/w/project/lib/x is read-only in the sandbox; if the work needs it, the user can allow it with --writable PATH',
  ],
])('a hint follows from: %s', (output, hint) => {
  expect(sandboxHintsFor(output, 'true', POLICY)).toEqual([hint]);
});

test('a hint takes the host from the command where the output names none', () => {
  const output = 'curl: (56) CONNECT tunnel failed, response 403';
  expect(sandboxHintsFor(output, 'curl https://far.example.com/x', POLICY)).toEqual([`${OFFLINE} far.example.com`]);
});

test('no hint follows from other failures', () => {
  expect(sandboxHintsFor('1 test failed\nAssertionError: expected 1 to be 2\n', 'true', POLICY)).toEqual([]);
});
