// Hooks of a batch: before the run, results of earlier runs; after it, output files, results for later runs, and
// annotations in GitHub Actions.

import { join, relative } from 'node:path';
import {
  readBatchCacheEntry,
  entryOfUnchangedTask,
  writeBatchCacheEntry,
  type CacheEntry,
} from '@drover/coordinator/batch/cache';
import { listBatchTaskBranches, readCommittedChanges, commitCachedChanges } from '@drover/coordinator/batch/changes';
import { isGoodBatchResult, type Result, batchResultOfTask } from '@drover/coordinator/batch/results';
import { type Tree, readItemTree } from '@drover/coordinator/batch/items/tree';
import type { KnownResult } from '@drover/coordinator/run/execute';
import type { Git } from '@drover/coordinator/git/git';
import type { RunEnd } from '@drover/coordinator/run/end';
import { DroverError } from '@drover/core/errors';
import { isDone, type RunSettings } from '@drover/protocol/run';
import { type Io, print } from '../io.ts';
import type { Companion } from '../run/running.ts';
import { formatAnnotations } from '../views/ci/annotations.ts';
import { cleanText, textForLog } from '../views/text/terminal-text.ts';
import type { KeptBatch } from './history.ts';
import { joinRepositories } from './results/join.ts';
import { FILES, writeBatchOutputs, writeBatchPatches } from './results/outputs.ts';
import type { BatchSummary } from './results/summary.ts';

export type Of = {
  readonly batch: KeptBatch;
  readonly run: string;
  readonly home: string;
  readonly settings: RunSettings;
  readonly shows: 'text' | 'json' | 'nothing';
};

export function batchCompanion(of: Of, io: Io): Companion {
  return {
    known: (git, signal) =>
      readKnownResults(of, git, signal).catch((error: unknown) => {
        // Then run every task again. If git fails for good, a later step reports it.
        if (error instanceof DroverError) return new Map<string, KnownResult>();
        throw error;
      }),
    ended: async (end, { git, redactor, values, startedAt }) => {
      const made = await listBatchResults(of, end, { git, hide: (line) => values.text(line) });
      const results = redactor.value(made as never) as readonly Result[];
      await writeBatchOutputs({
        out: of.batch.out,
        summary: redactor.value(summarizeBatch(of, end, startedAt) as never) as BatchSummary,
        results,
        junit: of.batch.junit,
        appendTo: of.batch.within === undefined ? listBatchSummaryFiles(of.batch, io) : [],
      });
      if (of.batch.within !== undefined) await joinRepositories(of.batch.within, {});
      if (of.batch.usesCache) await cacheBatchResults(of, end, git);
      await printBatchAnnotations(of, results, { git, io });
      if (of.shows === 'text') await print(io.stdout, textForLog(redactor.text(batchOutputSentence(of, io)), io.env));
    },
  };
}

async function readKnownResults({ batch, run, home, settings }: Of, git: Git, signal: AbortSignal) {
  if (!batch.usesCache) return new Map<string, KnownResult>();
  const { base } = settings;
  const tree = await readItemTree(git, base, signal);
  const entries = new Map<string, CacheEntry>();
  for (const [task, slot] of Object.entries(batch.tasks)) {
    const entry = await readBatchCacheEntry(home, slot, tree);
    if (entry !== undefined) entries.set(task, entry);
  }
  return commitCachedChanges(entries, { git, run, base });
}

type Here = { readonly git: Git; readonly hide: (line: string) => string };

async function listBatchResults(
  { batch, run, settings }: Of,
  end: RunEnd,
  { git, hide }: Here,
): Promise<readonly Result[]> {
  const { base } = settings;
  const about = { run, repository: batch.repository, selected: new Map(Object.entries(batch.tasks)) };
  const results = end.tasks.map((row) => batchResultOfTask(row, about));
  const commits = new Map(end.tasks.flatMap(({ task, commit }) => (commit === undefined ? [] : [[task, commit]])));
  const merged = (await listBatchTaskBranches(git, run)).get('merged');
  return writeBatchPatches(batch.out, results, { git, base, merged, commits, hide });
}

function summarizeBatch({ batch, run, settings }: Of, end: RunEnd, startedAt: string): BatchSummary {
  const { outcome, exitCode, reason, usage, cost } = end;
  return {
    v: 1,
    batch: batch.name,
    spec: batch.spec,
    run,
    model: settings.model,
    base: settings.base,
    startedAt,
    ...(batch.shard !== undefined && { shard: batch.shard }),
    total: batch.total,
    outcome,
    exitCode,
    ...(reason !== undefined && { reason }),
    usage,
    ...(cost !== undefined && { cost }),
    combined: relative(settings.repository, join(batch.out, FILES.combined)),
  };
}

function listBatchSummaryFiles({ summary }: KeptBatch, { env }: Io): readonly string[] {
  const { GITHUB_STEP_SUMMARY: step = '' } = env;
  return [...(step === '' ? [] : [step]), ...(summary === undefined ? [] : [summary])];
}

/** Stores the results of done tasks for later runs. */
async function cacheBatchResults({ batch, run, home, settings }: Of, end: RunEnd, git: Git): Promise<void> {
  const good = end.tasks.filter(({ status, cached }) => cached !== true && isDone(status));
  const left = await listBatchTaskBranches(git, run);
  const tree = await readItemTree(git, settings.base, AbortSignal.timeout(TREE_MS_MAX));
  const byCommit = new Map<string, RunEnd['tasks'][number]>();
  for (const row of good) {
    const slot = batch.tasks[row.task];
    const commit = left.get(row.task);
    if (row.status === 'landed' && commit !== undefined) byCommit.set(commit, row);
    if (row.status === 'done' && slot !== undefined)
      await writeBatchCacheEntry(home, slot.key, entryOfUnchangedTask(slot, row.summary ?? '', tree));
  }
  for await (const [commit, changes] of readCommittedChanges(git, [...byCommit.keys()])) {
    const row = byCommit.get(commit);
    const key = row && batch.tasks[row.task]?.key;
    if (row === undefined || key === undefined) continue;
    await writeBatchCacheEntry(home, key, { v: 1, summary: row.summary ?? '', changes: [...changes] });
  }
}

function batchOutputSentence({ batch, settings }: Of, io: Io): string {
  const path = relative(io.cwd, join(batch.out, FILES.report));
  const shown = path.startsWith('..') ? join(batch.out, FILES.report) : path;
  return cleanText(`\nThe report is ${shown}; results and patches of ${settings.goal} are beside it.\n`);
}

async function printBatchAnnotations(
  { settings, shows }: Of,
  results: readonly Result[],
  { git, io }: { readonly git: Git; readonly io: Io },
): Promise<void> {
  if ((io.env['GITHUB_ACTIONS'] ?? '') === '' || results.every(isGoodBatchResult)) return;
  const tree: Tree = await readItemTree(git, settings.base, AbortSignal.timeout(TREE_MS_MAX));
  // The GitHub runner reads annotations on both streams. With --json, standard output must hold JSON only.
  await print(
    shows === 'json' ? io.stderr : io.stdout,
    formatAnnotations(results, (path) => tree.has(path)),
  );
}

const TREE_MS_MAX = 30_000;
