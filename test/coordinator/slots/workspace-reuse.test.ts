// A reused slot costs only what changed in it, and a worker cannot hide a change.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Slots, type Workspace } from '@drover/coordinator/slots/slots';
import { forgetYoungInSweep } from '@drover/coordinator/slots/renewal/sweep';
import { describe, expect, test } from 'vitest';
import {
  contents,
  FILES,
  type Files,
  gitAs,
  order,
  take,
  type UserRepository,
  userRepository,
  writeFiles,
} from '../user-repository.ts';
import { proves } from '../../support/proves.ts';
import { DECEPTIONS, forge, known, rewrite, settled } from './workspace-deceptions.ts';
import { fakeGit } from './workspace-cut.ts';

/** Slots that log every git process, and that log. */
async function watched(user: UserRepository, ...lines: readonly string[]): Promise<[Slots, () => readonly string[]]> {
  const log = join(user.folder, 'gits');
  const PATH = fakeGit(
    user,
    `for word; do case "$word" in -*|*=*) ;; *) echo "$word" >> ${log}; break;; esac; done`,
    ...lines,
  );
  const repository = await user.open();
  const slots = await Slots.open({ home: user.home, repository, run: 'run_1', env: { ...user.env, PATH } });
  return [slots, () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : [])];
}

async function next(slots: Slots, workspace: Workspace): Promise<Workspace> {
  await workspace.release();
  return take(slots, workspace.base, { task: 'next' });
}

test('the next task at the same base starts at most one git, for changed files only', async () => {
  const user = await userRepository();
  const [slots, gits] = await watched(user);
  let workspace = await take(slots, (await user.open()).head);
  const clean = contents(workspace.path);
  expect(gits()).toEqual(['read-tree']);
  for (let n = 0; n < 3; n++) {
    workspace = await next(slots, workspace);
    expect(contents(workspace.path)).toEqual(clean);
  }
  expect(gits()).toEqual(['read-tree']);
  for (let n = 0; n < 3; n++) {
    await writeFiles(workspace.path, { 'src/a.ts': `by the ${n}th`, 'new.ts': 'new', 'x.log': 'ignored' });
    rmSync(join(workspace.path, 'src/deep'), { recursive: true });
    workspace = await next(slots, workspace);
    expect(contents(workspace.path)).toEqual(clean);
  }
  expect(gits()).toEqual(['read-tree', 'cat-file']);
  expect(gitAs(workspace.path, user.env, ['status', '--porcelain', '--ignored'])).toBe('');
  await slots.close();
});

test('restored files equal the originals: links, modes, odd names, empty files', async () => {
  const names = ['run.sh', 'emp ty', 'li\nne', 'ümläut/deep/er', 'link', 'plain'];
  const user = await userRepository(Object.fromEntries(names.map((name) => [name, name === 'emp ty' ? '' : name])));
  const raw = Buffer.concat([Buffer.from(`${user.top}/raw-`), Buffer.from([0xc3, 0x28])]);
  writeFileSync(raw, 'raw');
  chmodSync(join(user.top, 'run.sh'), 0o755);
  unlinkSync(join(user.top, 'link'));
  symlinkSync('run.sh', join(user.top, 'link'));
  user.git('add', '--all');
  user.git('-c', 'user.name=U', '-c', 'user.email=u@example.com', 'commit', '--quiet', '--message=odd');
  const { head } = await user.open();
  const [slots, gits] = await watched(user);
  const first = await take(slots, head);
  const before = looks(first.path);
  const copy = join(user.folder, 'copy');
  execFileSync('cp', ['-a', first.path, copy]);
  rmSync(first.path, { recursive: true });
  mkdirSync(first.path);
  const second = await next(slots, first);
  expect(looks(second.path)).toBe(before);
  execFileSync('diff', ['--recursive', '--no-dereference', '--exclude=.git', copy, second.path]);
  expect(gits()).toEqual(['read-tree', 'cat-file']);
  expect(gitAs(second.path, user.env, ['status', '--porcelain', '--ignored'])).toBe('');
  expect(await second.commit(order('drover/run_1/next'))).toBeUndefined();
  await slots.close();
});

/** Names, kinds, modes, sizes and link targets; names may be invalid UTF-8. */
function looks(folder: string): string {
  const columns = ['.', '-name', '.git', '-prune', '-o', '-printf', '%P %y %m %s %l\\n'];
  const found = execFileSync('find', columns, { cwd: folder, encoding: 'latin1' });
  return found
    .split('\n')
    .toSorted()
    .join('\n')
    .replaceAll(/ d (\d+) \d+/g, ' d $1');
}

describe('files with checkout filters are left to git:', () => {
  test.each([
    ['eol=crlf', 'one\r\ntwo $Id$\r\n', ['read-tree', 'checkout-index']],
    ['ident', 'one\ntwo $Id: e4d7bbce7fb1a5ddebc0d3ea24d8f2e0bdb11f12 $\n', ['read-tree', 'checkout-index']],
    ['text=auto', 'one\ntwo $Id$\n', ['read-tree', 'cat-file']],
  ])('%s', async (attribute, text, expected) => {
    const user = await userRepository({ '.gitattributes': `*.txt ${attribute}\n`, 'a.txt': 'one\ntwo $Id$\n' });
    const [slots, gits] = await watched(user);
    const first = await take(slots, (await user.open()).head);
    const before = readFileSync(join(first.path, 'a.txt'), 'utf8');
    await settled();
    writeFileSync(join(first.path, 'a.txt'), 'changed');
    const second = await next(slots, first);
    expect(readFileSync(join(second.path, 'a.txt'), 'utf8')).toBe(before);
    expect(before.replace(/[0-9a-f]{40}/, '')).toBe(text.replace(/[0-9a-f]{40}/, ''));
    expect(gits()).toEqual(expected);
    await slots.close();
  });
});

test.each([
  ['is lost', 'case "$*" in *cat-file*) exit 1;; esac'],
  ['says something else', 'case "$*" in *cat-file*) read -r line; echo "$line tree 0"; exit 0;; esac'],
  ['has not got it', 'case "$*" in *cat-file*) read -r line; echo "$line missing"; exec cat;; esac'],
])('where the git that reads files %s, another one writes them', async (_, line) => {
  const user = await userRepository();
  const [slots, gits] = await watched(user, line);
  let workspace = await take(slots, (await user.open()).head);
  const clean = contents(workspace.path);
  for (let n = 0; n < 2; n++) {
    await writeFiles(workspace.path, { 'src/a.ts': 'changed', 'src/b.ts': 'changed' });
    workspace = await next(slots, workspace);
    expect(contents(workspace.path)).toEqual(clean);
  }
  expect(gits()).toEqual(['read-tree', 'cat-file', 'checkout-index', 'checkout-index']);
  await slots.close();
});

test('very many files are restored, and the slot moves to another base and back', async () => {
  const many: Files = Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`many/${n}`, `${n}\n`]));
  const user = await userRepository({ ...FILES, ...many });
  const [slots, gits] = await watched(user);
  const { head } = await user.open();
  const first = await take(slots, head);
  const clean = contents(first.path);
  rmSync(join(first.path, 'many'), { recursive: true });
  const second = await next(slots, first);
  expect(contents(second.path)).toEqual(clean);
  await writeFiles(second.path, { 'src/a.ts': 'other' });
  const other = await second.commit(order('drover/run_1/next'));
  await writeFiles(second.path, { 'src/b.ts': 'left behind' });
  await second.release();
  const there = await take(slots, other?.commit ?? '', { task: 'there' });
  expect(contents(there.path)).toEqual({ ...clean, 'src/a.ts': '644 other' });
  await there.release();
  expect(contents((await take(slots, head, { task: 'back' })).path)).toEqual(clean);
  expect(gits().filter((word) => /read-tree|checkout-index|cat-file/.test(word))).toEqual([
    'read-tree',
    'checkout-index',
    'read-tree',
    'read-tree',
  ]);
  await slots.close();
});

// ── assumptions of the proof ──────────────────────────────────────────────────────────────────

describe('the next task finds a clean workspace, with all files long known, after', () => {
  test.each(DECEPTIONS)('%s', async (_, deceive) => {
    const { scene, slots, workspace, clean } = await known();
    deceive(scene);
    const after = await next(slots, workspace);
    expect(contents(after.path)).toEqual(clean);
    expect(lstatSync(join(after.path, 'src/a.ts')).nlink).toBe(1);
    expect(gitAs(after.path, scene.user.env, ['status', '--porcelain', '--ignored'])).toBe('');
    expect(await after.commit(order('drover/run_1/next'))).toBeUndefined();
  });
});

describe.each([
  ['with', 1n],
  ['without', 0n],
])('with timestamps %s parts of seconds', (_, partsOfSeconds) => {
  proves('workspace.clean', 'a same-looking change at the moment of handover is read and found', async () => {
    const { scene, slots, workspace, clean } = await known();
    await workspace.release();
    await slots.close();
    // Imitates a machine with a coarse clock.
    rewrite(join(scene.path, 'src/a.ts'));
    forge(scene, partsOfSeconds);
    const after = await take(await scene.user.slots('run_2'), workspace.base);
    expect(after.path).toBe(scene.path);
    expect(contents(after.path)).toEqual(clean);
  });
});

test('a base note of another index is ignored', async () => {
  const { scene, slots, workspace } = await known();
  await writeFiles(scene.path, { 'src/a.ts': 'other' });
  const other = await workspace.commit(order('drover/run_1/next'));
  await workspace.release();
  await slots.close();
  const [, digest] = readFileSync(join(scene.slot, 'git/base'), 'utf8').split(' ');
  writeFileSync(join(scene.slot, 'git/base'), `${other?.commit} ${digest?.replace(/^./, 'x')}`);
  const after = await take(await scene.user.slots('run_2'), other?.commit ?? '');
  expect(contents(after.path)['src/a.ts']).toBe('644 other');
});

test('a folder is known only if its worker can’t change it at its creation time', () => {
  const now = Date.now();
  const second = Math.floor(now / 1_000) * 1_000;
  const times = {
    long: now - 5_000.5,
    moment: now - 20.5,
    ahead: now + 20.5,
    whole: second - 1_000,
    longWhole: second - 9_000,
  };
  const folders = new Map(Object.entries(times).map(([path, ctimeMs]) => [path, { inode: 1, ctimeMs }]));
  forgetYoungInSweep(folders);
  expect([...folders.keys()]).toEqual(['long', 'longWhole']);
});
