// Objects that drover writes to its store equal those that git writes.

import { mkdirSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { DroverError } from '@drover/core/errors';
import { type NewCommit, writeStoreBranch, writeStoreCommit } from '@drover/coordinator/store/store-writing';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { describe, expect, test } from 'vitest';
import { runSync } from '../../support/process/run-sync.ts';
import { temporaryFolder } from '../../support/workspace.ts';

const WHEN = '2026-03-04T05:06:07.890Z';
const PEOPLE = [
  { name: 'Ada Lovelace', email: 'ada@example.com' },
  { name: '  "Dr. <b>Who</b>", Jr.;\n ', email: '<who@example.com>' },
  { name: 'A\nB', email: 'a\nb' },
  { name: "O'Neil, Zoë 😀", email: '' },
  { name: '.:drover\\', email: "'a@b'" },
];
const MESSAGES = ['one line', 'subject\n\nbody\n', '', 'ends with many\n\n\n', 'tr\u0001icky \u{1F600} ü\r\n'];

async function store(objectFormat: 'sha1' | 'sha256') {
  const gitDir = join(await temporaryFolder(), 'store.git');
  const git = (args: readonly string[], input = '', more = {}): string => {
    const env = { ...childProcessEnvironment(process.env), ...more };
    return runSync('git', ['--git-dir', gitDir, ...args], { cwd: '/', env, input }).toString();
  };
  runSync('git', ['init', '--quiet', '--bare', `--object-format=${objectFormat}`, gitDir], { cwd: '/' });
  const tree = git(['mktree']).trim();
  const date = '@1772600767 +0000';
  const first = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a' };
  const dates = { GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
  const parent = git(['commit-tree', tree, '-m', 'first'], '', { ...first, ...dates }).trim();
  const byGit = ({ by: { name, email }, message }: NewCommit) => {
    const who = {
      GIT_AUTHOR_NAME: name,
      GIT_AUTHOR_EMAIL: email,
      GIT_COMMITTER_NAME: name,
      GIT_COMMITTER_EMAIL: email,
    };
    return git(['commit-tree', tree, '-p', parent, '-F', '-'], message, { ...who, ...dates }).trim();
  };
  return { place: { gitDir, objectFormat }, git, tree, parent, byGit };
}

describe.each(['sha1', 'sha256'] as const)('in a store of %s', (format) => {
  test('a commit equals the one git makes, and git fsck accepts it', async () => {
    const { place, git, tree, parent, byGit } = await store(format);
    for (const by of PEOPLE) {
      for (const message of MESSAGES) {
        const commit: NewCommit = { tree, parent, message, by, when: WHEN };
        const id = await writeStoreCommit(place, commit);
        expect(git(['cat-file', 'commit', id]).endsWith(`\n\n${message}`)).toBe(true);
        expect(id).toBe(byGit(commit));
      }
    }
    expect(git(['fsck', '--strict', '--no-dangling'])).toBe('');
  });

  test('a branch moves to its commit from anywhere', async () => {
    const { place, git, tree, parent } = await store(format);
    const by = { name: 'a', email: 'a' };
    const id = await writeStoreCommit(place, { tree, parent, message: 'm', by, when: WHEN });
    for (const commit of [parent, id]) {
      await writeStoreBranch(place, 'drover/run_1/task', commit);
      expect(git(['rev-parse', 'refs/heads/drover/run_1/task']).trim()).toBe(commit);
    }
    expect(git(['for-each-ref', '--format=%(refname)'])).toBe('refs/heads/drover/run_1/task\n');
    expect(readdirSync(join(place.gitDir, 'refs', 'heads', 'drover', 'run_1'))).toEqual(['task']);
  });
});

test('an existing commit is refreshed, so that gc does not take it for old', async () => {
  const { place, tree, parent } = await store('sha1');
  const commit = { tree, parent, message: 'm', by: { name: 'a', email: 'a' }, when: WHEN };
  const id = await writeStoreCommit(place, commit);
  const path = join(place.gitDir, 'objects', id.slice(0, 2), id.slice(2));
  utimesSync(path, 1, 1);
  expect(await writeStoreCommit(place, commit)).toBe(id);
  expect(statSync(path).mtimeMs).toBeGreaterThan(Date.now() - 60_000);
});

test('an unwritable store is a failure with a reason, and nothing partial is left', async () => {
  const { place, parent } = await store('sha1');
  // A folder at the path of the ref stops even root.
  const way = join(place.gitDir, 'refs', 'heads', 'drover', 'run_1', 'task');
  mkdirSync(join(way, 'below'), { recursive: true });
  const failed = await writeStoreBranch(place, 'drover/run_1/task', parent).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(DroverError);
  expect((failed as DroverError).failure).toMatchObject({ kind: 'store.failed' });
  expect(readdirSync(join(way, '..'))).toEqual(['task']);
});
