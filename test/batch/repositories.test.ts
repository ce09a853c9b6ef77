// One batch over several repositories: each at its revision with its own merge train, one budget, one report.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Answer } from '@drover/rehearsal/script';
import { BatchDesk, noisyFiles, SPEC, tidying } from '../support/run/batch-desk.ts';
import { readJunit } from '../support/data/junit-schema.ts';
import { calls } from '../support/run/run-desk.ts';
import { runSync } from '../support/process/run-sync.ts';

const REPOS_SPEC = SPEC.replace('select:', 'select:\n  repos: repos.yaml');

/** The desk's own repository, and a second one with a commit after its tag. */
async function desk(list: string, instead?: (path: string, step: number) => Answer | undefined, spec = REPOS_SPEC) {
  const batch = await BatchDesk.with(tidying(instead), noisyFiles(1), spec);
  const other = join(batch.desk.folder, 'other');
  await mkdir(join(other, 'src'), { recursive: true });
  const git = (...args: readonly string[]) => runSync('git', args, { cwd: other }).toString();
  const commit = (message: string) => {
    git('add', '-A');
    git('-c', 'user.name=A Person', '-c', 'user.email=person@example.com', 'commit', '-q', '-m', message);
  };
  git('init', '-q', '-b', 'main');
  await writeFile(join(other, 'src', 'old.ts'), 'console.log(1);\n');
  commit('first');
  git('tag', 'v1');
  await writeFile(join(other, 'src', 'late.ts'), 'console.log(2);\n');
  commit('second');
  await writeFile(join(batch.desk.folder, 'repos.yaml'), list.replaceAll('OTHER', other));
  return { batch, other, git };
}

const BOTH = 'repositories:\n  - { path: project, revision: HEAD }\n  - { path: other, revision: v1 }\n';

test('each repository has its own run at its revision; one report covers all', async () => {
  const { batch, git } = await desk(BOTH);
  const { code, stdout } = await batch.drover(['--json']);
  expect([code, [...stdout.matchAll(/"type":"run_end"/g)].length]).toEqual([0, 2]);
  const rows = (await batch.results()).map(({ repository, task, status, patch }) => [repository, task, status, patch]);
  expect(rows).toEqual([
    ['project', 'src-file1.ts', 'landed', 'project/patches/src-file1.ts.patch'],
    ['other', 'src-old.ts', 'landed', 'other/patches/src-old.ts.patch'],
  ]);
  const suites = readJunit(await batch.text('junit.xml')).children.map(({ attributes }) => attributes['name']);
  expect(suites).toEqual(['no-console (project)', 'no-console (other)']);
  expect(await batch.text('report.md')).toContain('2 of 2 tasks are done');
  git('checkout', '-q', 'v1');
  git('apply', join(batch.out, 'other', 'combined.patch'));
  expect((await batch.drover(['--list'])).stdout).toBe(
    'project/src-file1.ts  Logging in src/file1.ts\nother/src-old.ts      Logging in src/old.ts\n',
  );
});

test('a repository with an address is fetched to drover’s own folder', async () => {
  const { batch } = await desk('repositories:\n  - { url: "file://OTHER", revision: v1, name: remote }\n');
  expect((await batch.drover([])).code).toBe(0);
  expect((await batch.results()).map(({ repository, status }) => [repository, status])).toEqual([['remote', 'landed']]);
});

test('one budget holds for all repositories', async () => {
  const dear = (path: string, step: number): Answer | undefined =>
    path === 'src/file1.ts' && step === 1 ? { ...calls('read', { path }), usage: { input: 97_000 } } : undefined;
  const { batch } = await desk(BOTH, dear);
  const { code } = await batch.drover(['--budget', '100ktok']);
  expect([code, JSON.parse(await batch.text('summary.json'))]).toEqual([
    6,
    expect.objectContaining({ exitCode: 6, outcome: 'incomplete' }),
  ]);
  expect((await batch.results()).map(({ repository, status }) => [repository, status])).toEqual([
    ['project', 'failed'],
    ['other', 'failed'],
  ]);
  const spent = (await batch.results()).reduce((sum, { usage }) => sum + usage.input + usage.output, 0);
  expect(spent).toBeLessThanOrEqual(100_000);
});

test.each([
  [
    'repositories:\n  - { path: project }\n',
    'repos.yaml:2:5: repositories[0].revision is missing; it must be a commit, a tag or a branch',
  ],
  ['repositories:\n  - { path: project, revision: v9 }\n', "repos.yaml:2:5: project has no revision 'v9'"],
  ['repositories:\n  - { path: nowhere, revision: v1 }\n', 'repos.yaml:2:5: there is no folder'],
  ['repositories:\n  - { path: a, url: b, revision: v1 }\n', 'repos.yaml:2:5: a repository needs either path or url'],
  ['repositories:\n  - { paht: a, revision: v1 }\n', "repos.yaml:2:7: unknown key 'paht'; did you mean path?"],
  ['repositories: []\n', 'repos.yaml:1:15: repositories must name at least one repository'],
])('%j is refused with its place', async (list, expected) => {
  const { batch } = await desk(list);
  const { code, stderr } = await batch.drover([]);
  expect([code, batch.requests]).toEqual([2, 0]);
  expect(stderr).toContain(expected);
});

test('a glob must match in at least one repository', async () => {
  const { batch } = await desk(BOTH, undefined, REPOS_SPEC.replace('"src/**/*.ts"', '"src/old.ts", "scr/*.ts"'));
  const { code, stderr } = await batch.drover(['--list']);
  expect([code, stderr]).toEqual([
    2,
    "drover: ../spec.yaml:6:25: 'scr/*.ts' matches no file of the repository; did you mean src/*.ts?\n",
  ]);
});
