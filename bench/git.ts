// The index reader, the sweep and the commit writer next to the plain git commands that they replace, on 2,000 files:
// the median of some rounds of both, in turn.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gitIndexChangesBetween } from '@drover/coordinator/git/index-changes';
import { EMPTY_INDEX, readGitIndex } from '@drover/coordinator/git/index-file';
import { openRepository } from '@drover/coordinator/git/repository';
import { Slots } from '@drover/coordinator/slots/slots';
import { writeStoreBranch, writeStoreCommit } from '@drover/coordinator/store/store-writing';
import { newFolder } from './folder.ts';

const FILES = 2_000;
const ROUNDS = 15;
const WHEN = '2026-01-01T00:00:00Z';
const env = {
  PATH: process.env['PATH'] ?? '',
  HOME: tmpdir(),
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'U',
  GIT_AUTHOR_EMAIL: 'u@example.com',
  GIT_COMMITTER_NAME: 'U',
  GIT_COMMITTER_EMAIL: 'u@example.com',
};

export async function lines(): Promise<readonly string[]> {
  const folder = newFolder();
  const top = join(folder, 'project');
  mkdirSync(top);
  const git = (cwd: string, ...args: readonly string[]): string => execFileSync('git', args, { cwd, env }).toString();
  git(top, 'init', '--quiet');
  touch(top, FILES, 'first');
  git(top, 'add', '--all');
  git(top, 'commit', '--quiet', '--message=first');
  const repository = await openRepository(top, env);
  const { head: base } = repository;
  const slots = await Slots.open({ home: join(folder, 'home'), repository, run: 'run_1', env });
  const next = () => slots.take({ worker: 1, task: 'task', attempt: 1, base, signal: new AbortController().signal });
  let workspace = await next();
  const plain = join(folder, 'plain');
  git(folder, 'clone', '--quiet', top, plain);
  const tree = git(top, 'rev-parse', 'HEAD^{tree}').trim();
  const index = join(workspace.path, '..', 'git', 'index');
  const place = { gitDir: slots.store.gitDir, objectFormat: repository.objectFormat };
  const by = { name: 'U', email: 'u@example.com' };

  const result = [
    await compared('changes by the index', {
      drover: async () => {
        const read = readGitIndex(readFileSync(index), repository.objectFormat) ?? EMPTY_INDEX;
        gitIndexChangesBetween(read, read, repository.objectFormat);
      },
      git: async () => git(plain, 'diff-index', '--cached', base),
    }),
    await compared('a tree cleaned for the next task, 5 files changed', {
      before: () => [workspace.path, plain].forEach((at) => touch(at, 5, 'changed')),
      drover: async () => {
        await workspace.release();
        workspace = await next();
      },
      git: async () => git(plain, 'reset', '--quiet', '--hard', base) + git(plain, 'clean', '--quiet', '-ffdx'),
    }),
    await compared('a commit and its branch', {
      drover: async () => {
        const commit = await writeStoreCommit(place, { tree, parent: base, message: 'done', by, when: WHEN });
        await writeStoreBranch(place, 'drover/run_1/task', commit);
      },
      git: async () => {
        const commit = git(plain, 'commit-tree', tree, '-p', base, '-m', 'done').trim();
        git(plain, 'update-ref', 'refs/heads/done', commit);
      },
    }),
  ];
  await slots.close();
  return result;
}

type Pair = {
  readonly before?: () => void;
  readonly drover: () => Promise<unknown>;
  readonly git: () => Promise<unknown>;
};

async function compared(what: string, { before, drover, git }: Pair): Promise<string> {
  const times: Record<'drover' | 'git', number[]> = { drover: [], git: [] };
  for (let n = 0; n < ROUNDS; n++) {
    before?.();
    times.drover.push(await timed(drover));
    times.git.push(await timed(git));
  }
  const [own, floor] = [median(times.drover), median(times.git)];
  const figures = `${own.toFixed(1)} ms against ${floor.toFixed(1)} ms of git`;
  return `${what.padEnd(50)} ${`${(own / floor).toFixed(2)}x`.padStart(10)}   (${figures})`;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
}

function touch(top: string, count: number, text: string): void {
  for (let n = 0; n < count; n++) {
    const folder = join(top, `folder-${n % 100}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `file-${n}.ts`), `${text} ${n}\n`);
  }
}
