// One batch over several repositories. Each repository has its own run, workspaces and merge train. The runs work
// concurrently and share workers, throttle, budget and deadline (shared.ts). One report covers all of them.
// On a terminal they run one after the other, because a question or a dashboard needs the whole terminal.
//
//   <out>/<repository>/…    what a batch of that repository leaves
//   <out>/results.ndjson, summary.json, report.md, junit.xml    of all together

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { BatchLimits } from '@drover/coordinator/batch/items/spec';
import { Limiter } from '@drover/coordinator/run/dispatch';
import { gitOfRepository } from '@drover/coordinator/git/repository';
import { DroverError, UsageError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import { runChildProcess } from '@drover/core/tools/process/child';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { exitCodeOfStop, exitCode } from '../start/exit-code.ts';
import type { Io } from '../io.ts';
import { type Surrounded, openRunSurroundings } from '../run/start-run.ts';
import { loadSettings, stateFolder, type TrustOptions } from '../start/settings.ts';
import { isViewPainted } from '../views/view-choice.ts';
import type { BatchArgs } from './batch-options.ts';
import { joinRepositories, mostSevereBatchExitCode } from './results/join.ts';
import type { Within } from './history.ts';
import { appendBatchReport, FILES, openBatchOutputFolder } from './results/outputs.ts';
import { prepareBatch } from './prepare.ts';
import type { RepositoryEntry } from '../files/repositories-file.ts';
import type { Threads } from '../run/running.ts';
import { openBatchShared, Turns } from './shared.ts';
import { refuseBatchSpec, type SpecFile } from '../files/batch-spec.ts';
import { type Batch, batchSettings, startBatch } from './start-batch.ts';

const CLONE_MS_MAX = 30 * 60_000;
const COMPLAINT_CHARS_MAX = 1_000;

/** Prepares the batches of all repositories before anything runs. */
export async function prepareRepositories(
  args: BatchArgs,
  { specFile, entries }: { readonly specFile: SpecFile; readonly entries: readonly RepositoryEntry[] },
  io: Io,
): Promise<readonly Batch[]> {
  const batches: Batch[] = [];
  for (const entry of entries) {
    const around = await openRepositoryEntry(entry, io, { trustsAll: args['trust-project'] });
    const place = { repository: around.repository, name: entry.name, shard: args.shard, isOneOfSeveral: true };
    batches.push({ specFile, around, name: entry.name, prepared: await prepareBatch(specFile, place, io) });
  }
  // A glob that matches in no repository is a mistake, as it is with one repository.
  const [first] = batches;
  const nowhere = first?.prepared.unmatched.filter(({ key }) =>
    batches.every(({ prepared }) => prepared.unmatched.some((other) => other.key === key)),
  );
  refuseBatchSpec(nowhere ?? [], specFile);
  return batches;
}

export async function startRepositories(args: BatchArgs, batches: readonly Batch[], io: Io): Promise<number> {
  const out = resolve(io.cwd, args.out ?? join('.drover', 'out'));
  await openBatchOutputFolder(out);
  const names = batches.map(({ name }) => name);
  const ids = batches.map(() => newId('run'));
  const limits: BatchLimits = batches[0]?.specFile.spec.limits ?? {};
  const budget = args.budget ?? limits.budget;
  const within: Within = { out, names, ...(budget !== undefined && { payers: ids }) };
  // Remove the results of an earlier batch, so they are not joined with this one.
  for (const name of names)
    for (const file of [FILES.results, FILES.summary]) await rm(join(out, name, file), { force: true });
  const threads = args.threads ?? (await loadSettings(io, io.cwd)).threads;
  const workers = await chooseBatchWorkers(args, batches, io);
  const timeout = args.timeout ?? limits.timeoutMs;
  const code = mostSevereBatchExitCode(
    await startEachRepository({ ...args, budget, timeout }, { batches, ids, within, workers, threads }, io),
  );
  const joined = await joinRepositories(within, { code, junit: args.junit && resolve(io.cwd, args.junit) });
  const step = io.env['GITHUB_STEP_SUMMARY'] ?? '';
  const files = [
    ...(step === '' ? [] : [step]),
    ...(args.summary === undefined ? [] : [resolve(io.cwd, args.summary)]),
  ];
  await appendBatchReport(out, files);
  return joined.summary.exitCode;
}

/** Number of workers that all runs share. Throws UsageError if a run can't start, before anything runs. */
async function chooseBatchWorkers(args: BatchArgs, batches: readonly Batch[], io: Io): Promise<number> {
  let most = 0;
  for (const batch of batches) most = Math.max(most, (await batchSettings(args, batch, io)).workers);
  return most;
}

type Several = Threads & {
  readonly batches: readonly Batch[];
  readonly ids: readonly string[];
  readonly within: Within;
};

/** Returns the exit codes of the runs that began. */
async function startEachRepository(
  args: BatchArgs,
  { batches, ids, within, workers, threads }: Several,
  io: Io,
): Promise<number[]> {
  await using shared = await openBatchShared({ workers, threads, within, log: args.log }, io);
  // Only one run at a time may ask the user or paint the terminal.
  const starts = new Limiter(isBatchWatched(args, io) ? 1 : Math.min(workers, batches.length));
  const turns = new Turns(shared.io, args.json || args.view === 'json' ? 0 : batches.length);
  const begunAt = performance.now();
  const start = async (batch: Batch, at: number): Promise<readonly number[]> => {
    const timeout = batchTimeLeft(args.timeout, performance.now() - begunAt);
    if (shared.stopped() !== undefined) return [exitCodeOfStop(shared.stopped())];
    if (timeout === 0) return [exitCode.deadline];
    // All runs would write the same result file, so only the last one writes it.
    const result = at === batches.length - 1 ? args.result : undefined;
    const own = { ...args, timeout, result, out: join(within.out, batch.name), junit: undefined, summary: undefined };
    const among = { id: ids[at] ?? newId('run'), within, shared };
    return [await startBatch(own, { ...batch, among }, turns.ioOf(at))];
  };
  const inTurn = async (batch: Batch, at: number): Promise<readonly number[]> => {
    try {
      return await start(batch, at);
    } finally {
      await turns.end(at);
    }
  };
  const ends = await Promise.allSettled(batches.map((batch, at) => starts.run(() => inTurn(batch, at))));
  const broken = ends.find((end) => end.status === 'rejected');
  if (broken !== undefined) throw broken.reason;
  return ends.flatMap((end) => (end.status === 'fulfilled' ? end.value : []));
}

function isBatchWatched(args: BatchArgs, io: Io): boolean {
  return isViewPainted(args, io) || (io.stdin.isTTY === true && io.stderr.isTTY === true);
}

function batchTimeLeft(timeoutMs: number | undefined, elapsedMs: number): number | undefined {
  return timeoutMs === undefined ? undefined : Math.max(0, Math.floor(timeoutMs - elapsedMs));
}

/** Opens the repository at its revision. A repository with an address is fetched to drover's state folder first. */
async function openRepositoryEntry(
  { name, at, revision, place }: RepositoryEntry,
  io: Io,
  trust: TrustOptions,
): Promise<Surrounded> {
  const path = 'path' in at ? at.path : await fetchBatchRepository({ name, url: at.url, place }, io);
  if (!existsSync(path)) throw new UsageError(`${place}: there is no folder ${path}`);
  const around = await openRunSurroundings(path, io, trust);
  const git = gitOfRepository(around.repository, childProcessEnvironment(io.env));
  const commit = await git(['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`]).catch(
    (error: unknown) => {
      if (!(error instanceof DroverError)) throw error;
      throw new UsageError(`${place}: ${name} has no revision '${revision}'`, { cause: error });
    },
  );
  const head = commit.out.trim();
  const { branch, ...repository } = around.repository;
  const isHead = head === repository.head;
  return { ...around, repository: { ...repository, head, ...(isHead && branch !== undefined && { branch }) } };
}

type Remote = { readonly name: string; readonly url: string; readonly place: string };

// Use the user's own git setup, because it has the keys, credential helpers and proxies.
async function fetchBatchRepository({ name, url, place }: Remote, io: Io): Promise<string> {
  const digest = createHash('sha256').update(url).digest('hex').slice(0, 12);
  const path = join(stateFolder(io), 'repositories', `${name}-${digest}`);
  await mkdir(dirname(path), { recursive: true });
  const isThere = existsSync(join(path, '.git'));
  const args = isThere ? ['fetch', '--quiet', '--tags', '--force', 'origin'] : ['clone', '--quiet', '--', url, path];
  let complaint = '';
  const end = await runChildProcess(
    {
      file: 'git',
      args,
      cwd: isThere ? path : dirname(path),
      env: { ...childProcessEnvironment(io.env), ...gitAccessEnvironment(io.env), GIT_TERMINAL_PROMPT: '0' },
      callId: newId('call'),
      timeoutMs: CLONE_MS_MAX,
      onStdout: () => undefined,
      onStderr: (chunk) => {
        complaint = `${complaint}${chunk.toString()}`.slice(-COMPLAINT_CHARS_MAX);
        return undefined;
      },
    },
    AbortSignal.timeout(CLONE_MS_MAX),
  );
  if (end.exitCode !== 0) throw new UsageError(`${place}: ${url} cannot be fetched: ${complaint.trim()}`);
  return path;
}

function gitAccessEnvironment(env: Io['env']): Record<string, string> {
  const names = ['SSH_AUTH_SOCK', 'SSH_AGENT_PID', 'GIT_SSH_COMMAND', 'GIT_ASKPASS', 'GIT_CONFIG_GLOBAL'];
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}
