// Traps that a worker could leave for the next one: none is run, followed or kept.

import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Slots, Workspace } from '@drover/coordinator/slots/slots';
import { describe, expect, test } from 'vitest';
import {
  contents,
  everyByte,
  gitAs,
  order,
  take,
  type UserRepository,
  userRepository,
  writeFiles,
} from '../user-repository.ts';
import { proves } from '../../support/proves.ts';
import { runSync } from '../../support/process/run-sync.ts';

type Scene = {
  readonly user: UserRepository;
  readonly slots: Slots;
  readonly workspace: Workspace;
  readonly head: string;
  readonly clean: Readonly<Record<string, string>>;
  /** A file outside, whose creation or change would prove that a trap worked. */
  readonly outside: string;
};

async function scene(): Promise<Scene> {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const workspace = await take(slots, head);
  const outside = join(user.folder, 'outside');
  await writeFiles(outside, { 'precious.txt': 'precious' });
  return { user, slots, workspace, head, clean: contents(workspace.path), outside };
}

/** The slot after the trap is released and taken again. */
async function nextIn({ slots, workspace, head }: Scene): Promise<Workspace> {
  await workspace.release();
  return take(slots, head, { task: 'next' });
}

proves('workspace.clean', 'git config of a worker runs nothing for drover or the user', async () => {
  const given = await scene();
  const { user, workspace, outside } = given;
  const { path } = workspace;
  const before = everyByte(user.top);
  const trap = join(user.folder, 'trap');
  const marker = (name: string) => `${join(outside, name)}`;
  writeFileSync(trap, `#!/bin/sh\ntouch "${marker('sprung')}"\ncat\n`);
  chmodSync(trap, 0o755);
  const git = (...args: readonly string[]) => gitAs(path, user.env, args);
  for (const kind of ['clean', 'smudge', 'process']) git('config', `filter.evil.${kind}`, trap);
  git('config', 'filter.evil.required', 'true');
  git('config', 'core.hooksPath', join(path, 'hooks'));
  for (const name of [
    'core.fsmonitor',
    'core.pager',
    'core.editor',
    'core.sshCommand',
    'gpg.program',
    'diff.external',
  ]) {
    git('config', name, trap);
  }
  git('config', 'commit.gpgSign', 'true');
  for (const word of ['status', 'add', 'commit', 'st']) git('config', `alias.${word}`, `!${trap}`);
  git('config', 'diff.evil.textconv', trap);
  git('config', 'merge.evil.driver', trap);
  await writeFiles(path, { '.gitattributes': '* filter=evil diff=evil merge=evil\n', 'src/a.ts': 'changed' });
  for (const hook of ['pre-commit', 'post-checkout', 'post-index-change', 'reference-transaction', 'update']) {
    for (const folder of ['hooks', '.git/hooks']) {
      mkdirSync(join(path, folder), { recursive: true });
      copyFileSync(trap, join(path, folder, hook));
    }
  }
  // Copies the repository into a folder with tracked files, where git does not see it.
  cpSync(join(path, '.git'), join(path, 'src/.git'), { recursive: true });
  // Proves that the trap works.
  expect(() => git('status')).toThrow('evil');
  expect(existsSync(marker('sprung'))).toBe(true);
  unlinkSync(marker('sprung'));

  const made = await workspace.commit(order('drover/run_1/task'));
  const next = await nextIn(given);
  const onIt = await take(given.slots, made?.commit ?? '', { task: 'on-it' });
  expect(everyByte(user.top)).toEqual(before);
  // The next git in this slot, run by drover or a worker.
  for (const cwd of [next.path, join(next.path, 'src'), onIt.path, user.top]) gitAs(cwd, user.env, ['status']);
  gitAs(user.top, user.env, ['fetch', '--quiet', given.slots.store.gitDir, made?.commit ?? '']);

  expect(made?.files).toEqual([
    '.gitattributes',
    ...['post-checkout', 'post-index-change', 'pre-commit', 'reference-transaction', 'update'].map(
      (hook) => `hooks/${hook}`,
    ),
    'src/a.ts',
  ]);
  expect(existsSync(marker('sprung'))).toBe(false);
  expect(contents(next.path)).toEqual(given.clean);
});

const TRAPS: [string, (scene: Scene) => void][] = [
  [
    'a file rewritten to the same length, its time set back',
    ({ workspace: { path } }) => {
      const file = join(path, 'src/a.ts');
      const { atime, mtime } = lstatSync(file);
      writeFileSync(file, readFileSync(file, 'utf8').replace('1', '7'));
      utimesSync(file, atime, mtime);
    },
  ],
  ['a file that only looks the same', ({ workspace: { path } }) => chmodSync(join(path, 'src/a.ts'), 0o666)],
  [
    'a second name for a file',
    ({ workspace: { path }, outside }) => linkSync(join(path, 'src/a.ts'), join(outside, 'same')),
  ],
  [
    'a link to a folder elsewhere, where the very same files are',
    ({ workspace: { path }, outside }) => {
      renameSync(join(path, 'src'), join(outside, 'src'));
      symlinkSync(join(outside, 'src'), join(path, 'src'));
    },
  ],
  [
    'a link to a folder that is not the workspace’s',
    ({ workspace: { path }, outside }) => {
      rmSync(join(path, 'src'), { recursive: true });
      symlinkSync(outside, join(path, 'src'));
    },
  ],
  [
    'a link in place of the workspace',
    ({ workspace: { path }, outside }) => {
      rmSync(path, { recursive: true });
      symlinkSync(outside, path);
    },
  ],
  [
    'a file in place of the workspace',
    ({ workspace: { path } }) => {
      rmSync(path, { recursive: true });
      writeFileSync(path, 'x');
    },
  ],
  ['no workspace at all', ({ workspace: { path } }) => rmSync(path, { recursive: true })],
  [
    'a link in place of its git folder',
    ({ workspace: { path }, outside }) => {
      rmSync(join(path, '.git'), { recursive: true });
      symlinkSync(outside, join(path, '.git'));
    },
  ],
  [
    'a file in place of its git folder',
    ({ workspace: { path }, user }) => {
      rmSync(join(path, '.git'), { recursive: true });
      writeFileSync(join(path, '.git'), `gitdir: ${user.top}/.git\n`);
    },
  ],
  [
    'folders that may not be read or written',
    ({ workspace: { path } }) => {
      mkdirSync(join(path, 'locked/inner'), { recursive: true });
      writeFileSync(join(path, 'locked/inner/file'), 'x');
      chmodSync(join(path, 'locked/inner'), 0);
      chmodSync(join(path, 'locked'), 0);
      chmodSync(join(path, 'src/deep'), 0o555);
      chmodSync(join(path, 'src'), 0);
    },
  ],
  [
    'files that may not be written',
    ({ workspace: { path } }) => {
      for (const name of ['src/a.ts', 'README.md']) chmodSync(join(path, name), 0o444);
    },
  ],
  [
    'pipes, also where a file was',
    ({ workspace: { path } }) => {
      unlinkSync(join(path, 'src/a.ts'));
      runSync('mkfifo', [join(path, 'src/a.ts'), join(path, 'pipe')], { cwd: path });
    },
  ],
  [
    'a folder where a file was, and a file where a folder was',
    ({ workspace: { path } }) => {
      unlinkSync(join(path, 'src/a.ts'));
      mkdirSync(join(path, 'src/a.ts/more'), { recursive: true });
      rmSync(join(path, 'src/deep'), { recursive: true });
      writeFileSync(join(path, 'src/deep'), 'x');
    },
  ],
  [
    'folders deeper than a path may be long',
    ({ workspace: { path } }) => {
      const name = 'd'.repeat(200);
      runSync('bash', ['-c', `for n in {1..40}; do mkdir ${name} && cd ${name}; done; touch end`], { cwd: path });
    },
  ],
  [
    'repositories inside of the workspace, with ignored files in them',
    ({ workspace: { path }, user }) => {
      for (const folder of ['nested', 'src/nested', 'node_modules/m']) {
        mkdirSync(join(path, folder), { recursive: true });
        gitAs(join(path, folder), user.env, ['init', '--quiet']);
        writeFileSync(join(path, folder, 'x.log'), 'x');
      }
    },
  ],
  [
    'an index and a lock of its own making',
    ({ workspace: { path } }) => {
      writeFileSync(join(path, '.git/index'), 'rubbish');
      writeFileSync(join(path, '.git/index.lock'), '');
    },
  ],
  [
    'names with line ends, and no text at all',
    ({ workspace: { path } }) => {
      mkdirSync(join(path, 'line\nend'));
      writeFileSync(join(path, 'line\nend/a\n'), 'x');
      writeFileSync(Buffer.concat([Buffer.from(`${path}/src/`), Buffer.from([0xc3, 0x28])]), 'x');
    },
  ],
  [
    'the lock and the index of the slot, as a crash of git leaves them',
    ({ workspace: { path } }) => {
      writeFileSync(join(path, '../git/index.lock'), '');
      writeFileSync(join(path, '../git/index'), 'DIRC rubbish');
    },
  ],
];

describe('the next task finds a clean workspace after', () => {
  test.each(TRAPS)('%s', async (_, set) => {
    const given = await scene();
    set(given);
    const next = await nextIn(given);
    expect(next.path).toBe(given.workspace.path);
    expect(contents(next.path)).toEqual(given.clean);
    expect(gitAs(next.path, given.user.env, ['status', '--porcelain', '--ignored'])).toBe('');
    expect(readFileSync(join(given.outside, 'precious.txt'), 'utf8')).toBe('precious');
    expect(lstatSync(join(next.path, 'src/a.ts')).nlink).toBe(1);
    await writeFiles(next.path, { 'src/a.ts': 'changed', 'src/deep/new.ts': 'new' });
    const made = await next.commit(order('drover/run_1/next'));
    expect(made?.files).toEqual(['src/a.ts', 'src/deep/new.ts']);
  });
});

test('a broken workspace is committed as far as possible', async () => {
  const { workspace, user } = await scene();
  const { path } = workspace;
  unlinkSync(join(path, 'src/a.ts'));
  runSync('mkfifo', [join(path, 'src/a.ts'), join(path, 'pipe')], { cwd: path });
  writeFileSync(join(path, 'new.txt'), 'new');
  chmodSync(join(path, 'new.txt'), 0);
  mkdirSync(join(path, 'locked'));
  writeFileSync(join(path, 'locked/in.txt'), 'in');
  chmodSync(join(path, 'locked'), 0);
  mkdirSync(join(path, 'unborn'));
  gitAs(join(path, 'unborn'), user.env, ['init', '--quiet']);
  expect(await workspace.commit(order('drover/run_1/task'))).toEqual({
    commit: expect.any(String),
    files: ['locked/in.txt', 'new.txt', 'src/a.ts'],
    leftOut: ['unborn'],
  });
});

test('a repository inside the workspace is left out of the commit, and named', async () => {
  const { workspace, user } = await scene();
  const { path } = workspace;
  await writeFiles(path, { 'nested/inner.ts': 'x', 'src/a.ts': 'changed' });
  const git = (...args: readonly string[]) => gitAs(join(path, 'nested'), user.env, args);
  git('init', '--quiet');
  git('add', '--all');
  git('-c', 'user.name=W', '-c', 'user.email=w@x', 'commit', '--quiet', '--message=inner');
  const made = await workspace.commit(order('drover/run_1/task'));
  expect(made).toEqual({ commit: expect.any(String), files: ['src/a.ts'], leftOut: ['nested'] });
});

test('work that is all inside a nested repository is a failure, not an empty success', async () => {
  const { workspace, user } = await scene();
  mkdirSync(join(workspace.path, 'nested'));
  gitAs(join(workspace.path, 'nested'), user.env, ['init', '--quiet']);
  await expect(workspace.commit(order('drover/run_1/task'))).rejects.toThrow(
    "all changes are inside a git repository of its own, which can't be part of a commit: nested",
  );
});

test('nothing is committed through a link in place of the workspace', async () => {
  const { workspace, outside } = await scene();
  rmSync(workspace.path, { recursive: true });
  symlinkSync(outside, workspace.path);
  await expect(workspace.commit(order('drover/run_1/task'))).rejects.toThrow('a link stands in its place');
});

test('a workspace without its git folder does not use a repository above it', async () => {
  const { workspace, user } = await scene();
  gitAs(user.folder, user.env, ['init', '--quiet']);
  rmSync(join(workspace.path, '.git'), { recursive: true });
  expect(() => gitAs(workspace.path, user.env, ['status'])).toThrow('not a git repository');
});

test.each(['../../../../x', 'a..b', 'x.lock', 'a b'])('a task named %j gets no workspace', async (task) => {
  const { slots, head } = await scene();
  const taken = take(slots, head, { task });
  await expect(taken).rejects.toThrow("can't be the name of a branch");
  await expect(taken).rejects.toMatchObject({ failure: { kind: 'workspace.failed' } });
});
