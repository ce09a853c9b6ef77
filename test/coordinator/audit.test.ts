// The audit of the user's checkout: changes that it reports, and those that it ignores.

import {
  appendFileSync,
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { differencesOfRepository, fingerprintRepository } from '@drover/coordinator/git/audit';
import { describe, expect, test } from 'vitest';
import { everyByte, type UserRepository, userRepository } from './user-repository.ts';

type Change = (user: UserRepository) => void;

/** The report of a change in a checkout that was dirty before. */
async function told(change: Change): Promise<readonly string[]> {
  const user = await userRepository();
  await user.write({ 'src/b.ts': 'dirty', 'untracked/file': 'x', 'x.log': 'ignored' });
  mkdirSync(join(user.top, '.git/hooks'));
  writeFileSync(join(user.top, '.git/hooks/pre-commit'), 'exit 0\n');
  const repository = await user.open();
  const before = await fingerprintRepository(repository, user.env);
  change(user);
  return differencesOfRepository(JSON.parse(JSON.stringify(before)), await fingerprintRepository(repository, user.env));
}

function rewrite(path: string, change: (text: string) => string): void {
  const { atime, mtime } = lstatSync(path);
  writeFileSync(path, change(readFileSync(path, 'utf8')));
  utimesSync(path, atime, mtime);
}

const in_ = (user: UserRepository, path: string) => join(user.top, path);
const commit = (user: UserRepository) =>
  user.git('-c', 'user.name=U', '-c', 'user.email=u@x', 'commit', '--quiet', '--allow-empty', '--message=x');

const NOTICED: [string, Change, readonly string[]][] = [
  ['a changed file', (user) => appendFileSync(in_(user, 'src/a.ts'), 'x'), ['src/a.ts']],
  [
    'a file rewritten to the same length, its time set back',
    (user) => rewrite(in_(user, 'src/a.ts'), (text) => text.replace('1', '7')),
    ['src/a.ts'],
  ],
  [
    'the same with a file that was changed before',
    (user) => rewrite(in_(user, 'src/b.ts'), () => 'DIRTY'),
    ['src/b.ts'],
  ],
  ['a change taken back', (user) => user.git('checkout', '--quiet', '--', 'src/b.ts'), ['src/b.ts']],
  ['a removed file', (user) => unlinkSync(in_(user, 'README.md')), ['README.md']],
  ['a new file', (user) => writeFileSync(in_(user, 'constructor'), ''), ['constructor']],
  [
    'a changed file that git doesn’t know',
    (user) => rewrite(in_(user, 'untracked/file'), () => 'y'),
    ['untracked/file'],
  ],
  [
    'a removed file that git doesn’t know',
    (user) => rmSync(in_(user, 'untracked'), { recursive: true }),
    ['untracked/file'],
  ],
  ['a file that became a program', (user) => chmodSync(in_(user, 'untracked/file'), 0o755), ['untracked/file']],
  [
    'a file that became a link to the same',
    (user) => {
      unlinkSync(in_(user, 'untracked/file'));
      symlinkSync('../README.md', in_(user, 'untracked/file'));
    },
    ['untracked/file'],
  ],
  ['something staged', (user) => user.git('add', 'src/b.ts'), ['the index']],
  [
    'a file git was told not to look at',
    (user) => user.git('update-index', '--assume-unchanged', 'src/a.ts'),
    ['the index', 'src/a.ts'],
  ],
  ['a commit', commit, ['HEAD']],
  ['another branch', (user) => user.git('checkout', '--quiet', '-b', 'other'), ['the branch']],
  ['a setting', (user) => user.git('config', 'core.fsmonitor', '/tmp/x'), ['config']],
  ['a new hook', (user) => writeFileSync(in_(user, '.git/hooks/post-commit'), 'x'), ['hooks']],
  ['a changed hook', (user) => rewrite(in_(user, '.git/hooks/pre-commit'), () => 'exit 1\n'), ['hooks']],
  ['a hook that is on now', (user) => chmodSync(in_(user, '.git/hooks/pre-commit'), 0o755), ['hooks']],
  [
    'what is ignored from now on',
    (user) => {
      mkdirSync(in_(user, '.git/info'));
      writeFileSync(in_(user, '.git/info/exclude'), 'untracked\n');
    },
    ['info', 'untracked/file'],
  ],
];

describe('the audit reports:', () => {
  test.each(NOTICED)('%s', async (_, change, words) => {
    expect(await told(change)).toEqual(words);
  });
});

const NOT_WORTH_A_WORD: [string, Change][] = [
  ['nothing', () => undefined],
  [
    'files that were touched or read',
    (user) => {
      for (const path of ['src/a.ts', 'src/b.ts', 'untracked/file']) utimesSync(in_(user, path), 1, 1);
    },
  ],
  [
    'an index in which git has noted new times',
    (user) => {
      utimesSync(in_(user, 'src/a.ts'), 1_000_000_000, 1_000_000_000);
      const before = readFileSync(in_(user, '.git/index'));
      user.git('status');
      expect(readFileSync(in_(user, '.git/index')).equals(before)).toBe(false);
    },
  ],
  ['ignored files', (user) => writeFileSync(in_(user, 'y.log'), '')],
  ['a branch that isn’t checked out', (user) => user.git('branch', 'drover/run_1/merged')],
];

describe('the audit ignores:', () => {
  test.each(NOT_WORTH_A_WORD)('%s', async (_, change) => {
    expect(await told(change)).toEqual([]);
  });
});

test('staged content is compared in every index format', async () => {
  const user = await userRepository();
  const repository = await user.open();
  const before = await fingerprintRepository(repository, user.env);
  user.git('update-index', '--index-version', '4');
  const after = await fingerprintRepository(repository, user.env);
  expect(differencesOfRepository(before, after)).toEqual([]);
  await user.write({ 'src/deep/d.ts': 'new' });
  user.git('add', '--intent-to-add', 'src/deep/d.ts');
  expect(differencesOfRepository(after, await fingerprintRepository(repository, user.env))).toEqual([
    'the index',
    'src/deep/d.ts',
  ]);
});

test('a file with assume-unchanged is still compared', async () => {
  const user = await userRepository();
  user.git('update-index', '--skip-worktree', 'src/a.ts');
  const repository = await user.open();
  const before = await fingerprintRepository(repository, user.env);
  rewrite(join(user.top, 'src/a.ts'), (text) => text.replace('1', '7'));
  expect(differencesOfRepository(before, await fingerprintRepository(repository, user.env))).toEqual(['src/a.ts']);
});

test('the audit changes nothing', async () => {
  const user = await userRepository();
  await user.write({ 'src/a.ts': 'changed' });
  const repository = await user.open();
  const before = everyByte(user.top);
  await fingerprintRepository(repository, user.env);
  expect(everyByte(user.top)).toEqual(before);
});
