// Installed dependencies as hard links to a private copy: kept for the next task, and made again after damage.

import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { Slots } from '@drover/coordinator/slots/slots';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { contents, take, userRepository, writeFiles } from './user-repository.ts';

const INSTALLED = {
  'node_modules/.package-lock.json': '{}\n',
  'node_modules/one/index.js': 'one\n',
  'node_modules/one/lib/deep/part.js': 'part\n',
  'node_modules/tw\u00F6/lib/index.js': 'two\n',
};
const LATER_MS = 10_000;
const AGES = ['just linked', 'linked a while ago'] as const;

afterEach(() => {
  vi.useRealTimers();
});

/** Folders that were linked in the last moment are compared file by file, older ones by their ctime. */
async function npmSlots(age: (typeof AGES)[number] = 'linked a while ago') {
  if (age === 'linked a while ago') vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + LATER_MS });
  const user = await userRepository();
  await user.write({ 'package-lock.json': '{}\n' });
  await writeFiles(user.top, INSTALLED);
  symlinkSync('../one/index.js', join(user.top, 'node_modules/one/link.js'));
  const repository = await user.open();
  const dependencies = { folders: ['node_modules'], how: 'link' } as const;
  const open = async (run: string) => {
    const slots = await Slots.open({ home: user.home, repository, run, env: user.env, dependencies });
    onTestFinished(() => slots.close());
    return slots;
  };
  const { head } = repository;
  const inode = (workspace: string, path: string) => lstatSync(join(workspace, 'node_modules', path)).ino;
  return { user, head, open, inode };
}

test.each(AGES)('the next run keeps the links of a slot, and removes what a task added: %s', async (age) => {
  const { user, head, open, inode } = await npmSlots(age);
  const first = await open('run_1');
  const workspace = await take(first, head);
  const linked = contents(join(workspace.path, 'node_modules'));
  expect(Object.keys(linked).filter((path) => !path.endsWith('/'))).toHaveLength(5);
  expect(linked['one/index.js']).toMatch(/444/);
  expect(inode(workspace.path, 'one/index.js')).not.toBe(lstatSync(join(user.top, 'node_modules/one/index.js')).ino);
  const before = inode(workspace.path, 'one');
  await writeFiles(workspace.path, { 'node_modules/.vite/x': 'x', 'node_modules/mine/y': 'y' });
  await workspace.release();
  await first.close();
  const again = await take(await open('run_2'), head);
  expect([inode(again.path, 'one'), contents(join(again.path, 'node_modules'))]).toEqual([before, linked]);
});

const HARM: Readonly<Record<string, (one: string) => void>> = {
  'replaces a file': (one) => {
    writeFileSync(join(one, 'lib/deep/new'), 'evil\n');
    renameSync(join(one, 'lib/deep/new'), join(one, 'lib/deep/part.js'));
  },
  'adds a file': (one) => writeFileSync(join(one, 'lib/deep/more.js'), 'more\n'),
  'removes a file': (one) => rmSync(join(one, 'lib/deep/part.js')),
  'removes a package': (one) => rmSync(one, { recursive: true }),
  'puts a link in place of a folder': (one) => {
    renameSync(join(one, 'lib'), join(one, '../../lib'));
    symlinkSync('../../lib', join(one, 'lib'));
  },
  'puts another folder in place of a folder': (one) => {
    renameSync(join(one, 'lib/deep'), join(one, '../../deep'));
    mkdirSync(join(one, 'lib/deep'));
  },
};

const harms = AGES.flatMap((age) => Object.keys(HARM).map((what) => [what, age] as const));
test.each(harms)('a task that %s in a package leaves nothing for the next one: %s', async (what, age) => {
  const { head, open } = await npmSlots(age);
  const slots = await open('run_1');
  const workspace = await take(slots, head);
  const linked = contents(join(workspace.path, 'node_modules'));
  HARM[what]?.(join(workspace.path, 'node_modules/one'));
  await workspace.release();
  const again = await take(slots, head);
  expect(contents(join(again.path, 'node_modules'))).toEqual(linked);
  expect(await slots.auditDependencies()).toBeUndefined();
});

test('the audit finds a change of a shared file, and the next run makes another copy', async () => {
  const { head, open } = await npmSlots();
  const slots = await open('run_1');
  const { path, release } = await take(slots, head);
  await chmod(join(path, 'node_modules/one/index.js'), 0o644);
  writeFileSync(join(path, 'node_modules/one/index.js'), 'evil\n');
  await expect(slots.auditDependencies()).rejects.toMatchObject({
    failure: { kind: 'dependencies.changed', paths: ['node_modules/one/index.js'] },
  });
  await release();
  await slots.close();
  const again = await take(await open('run_2'), head);
  expect(readFileSync(join(again.path, 'node_modules/one/index.js'), 'utf8')).toBe('one\n');
});

test('two runs that make the copy at the same time both pass the audit', async () => {
  const { head, open } = await npmSlots();
  const both = [await open('run_1'), await open('run_2')];
  await Promise.all(both.map((slots) => take(slots, head)));
  for (const slots of both) expect(await slots.auditDependencies()).toBeUndefined();
});

test('workspaces prepared ahead have all their links, also after a stopped preparation', async () => {
  const { head, open } = await npmSlots();
  const stopped = await open('run_1');
  stopped.prepare(2);
  await stopped.close();
  const slots = await open('run_2');
  slots.prepare(2);
  const workspaces = await Promise.all([1, 2].map((worker) => take(slots, head, { worker, task: `task-${worker}` })));
  for (const { path } of workspaces) {
    expect(Object.keys(contents(join(path, 'node_modules'))).filter((name) => !name.endsWith('/'))).toHaveLength(5);
    expect(existsSync(join(path, 'README.md'))).toBe(true);
  }
});
