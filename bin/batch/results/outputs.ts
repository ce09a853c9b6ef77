// Writes the outputs of a batch: results, patches and reports in one folder, for people and programs.
//
//   results.ndjson    a row a task               patches/<task>.patch          what each task changed
//   summary.json      the batch in one object    patches/not-landed/…          work that did not make it
//   report.md         for people                 combined.patch                everything that landed
//   junit.xml         for CI systems
//
// They are written however the batch ends. Each file is written atomically and replaces that of an earlier run.
// All texts are redacted. In patches, only exact secret values in added lines are hidden.

import { appendFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { batchPatchBetween, readBatchPatches } from '@drover/coordinator/batch/patches';
import type { Result } from '@drover/coordinator/batch/results';
import { writeBatchFileWhole } from '@drover/coordinator/batch/whole-file';
import type { Git } from '@drover/coordinator/git/git';
import { UsageError } from '@drover/core/errors';
import { errorCodeOf } from '../../start/settings.ts';
import { jsonViewText } from '../../views/json.ts';
import { formatJunit } from '../../views/ci/junit.ts';
import { batchReport } from './report.ts';
import type { BatchSummary } from './summary.ts';

const STEP_SUMMARY_BYTES_MAX = 1_000_000; // the GitHub runner drops a summary of more than a mebibyte
const NOT_LANDED = 'not-landed';

/** Outputs, already redacted. */
export type Outputs = {
  readonly out: string;
  readonly summary: BatchSummary;
  readonly results: readonly Result[];
  /** Optional further files. */
  readonly junit: string | undefined;
  readonly appendTo: readonly string[];
};

export const FILES = {
  results: 'results.ndjson',
  summary: 'summary.json',
  report: 'report.md',
  junit: 'junit.xml',
  combined: 'combined.patch',
  patches: 'patches',
} as const;

/** Makes the folder before anything is spent. Throws UsageError if it can't. */
export async function openBatchOutputFolder(out: string): Promise<void> {
  try {
    await mkdir(join(out, FILES.patches), { recursive: true });
    // Keeps git from committing the outputs or reporting them as changes.
    await writeFile(join(out, '.gitignore'), '*\n');
  } catch (error) {
    throw new UsageError(`--out: ${out} cannot be written (${errorCodeOf(error)})`, { cause: error });
  }
}

export async function writeBatchOutputs({ out, summary, results, junit, appendTo }: Outputs): Promise<void> {
  const rows = results.map((result) => `${jsonViewText(result)}\n`).join('');
  const report = batchReport(summary, results);
  const xml = formatJunit(results, { ...summary, name: summary.batch, at: summary.startedAt });
  await mkdir(out, { recursive: true });
  await writeBatchFileWhole(join(out, FILES.results), rows);
  await writeBatchFileWhole(join(out, FILES.summary), `${jsonViewText(summary, 2)}\n`);
  await writeBatchFileWhole(join(out, FILES.report), report);
  await writeBatchFileWhole(join(out, FILES.junit), xml);
  if (junit !== undefined) await writeBatchFileWhole(junit, xml);
  await appendBatchReport(out, appendTo);
}

/** Appends the existing report to other files. */
export async function appendBatchReport(out: string, files: readonly string[]): Promise<void> {
  if (files.length === 0) return;
  const report = boundBatchReport(await readFile(join(out, FILES.report), 'utf8'));
  for (const path of files) await appendFile(path, report);
}

export type BatchWork = {
  readonly git: Git; // git folder of the store
  readonly base: string;
  readonly merged: string | undefined; // the landed commit; undefined if nothing landed
  /** The commit that holds a task's work. */
  readonly commits: ReadonlyMap<string, string>;
  /** Hides secrets in an added line. */
  readonly hide: (line: string) => string;
};

/** Writes the patches, and returns the results with their paths. */
export async function writeBatchPatches(
  out: string,
  results: readonly Result[],
  work: BatchWork,
): Promise<readonly Result[]> {
  const { git, base, merged, commits, hide } = work;
  const folder = join(out, FILES.patches);
  await emptyOutputFolder(folder);
  await mkdir(join(folder, NOT_LANDED), { recursive: true });
  const withWork = results.filter(({ task }) => commits.has(task));
  const byCommit = Map.groupBy(withWork, ({ task }) => commits.get(task) ?? '');
  const paths = new Map<string, string>();
  for await (const { commit, patch } of readBatchPatches(git, [...byCommit.keys()])) {
    if (patch === '') continue;
    for (const { task, status } of byCommit.get(commit) ?? []) {
      const path = join(folder, ...(status === 'landed' ? [] : [NOT_LANDED]), `${task}.patch`);
      await writeBatchFileWhole(path, redactBatchPatch(patch, hide), 'latin1');
      paths.set(task, relative(out, path));
    }
  }
  const combined = merged === undefined ? '' : await batchPatchBetween(git, base, merged);
  await writeBatchFileWhole(join(out, FILES.combined), redactBatchPatch(combined, hide), 'latin1');
  return results.map((result) => {
    const patch = paths.get(result.task);
    return patch === undefined ? result : { ...result, patch };
  });
}

function redactBatchPatch(patch: string, hide: (line: string) => string): string {
  return patch.replaceAll(/^\+(?!\+\+ ).*$/gm, (line) => `+${hide(line.slice(1))}`);
}

async function emptyOutputFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder))
    if (name.endsWith('.patch') || name === NOT_LANDED) await rm(join(folder, name), { recursive: true, force: true });
}

function boundBatchReport(report: string): string {
  if (Buffer.byteLength(report) <= STEP_SUMMARY_BYTES_MAX) return `${report}\n`;
  const cut = Buffer.from(report).subarray(0, STEP_SUMMARY_BYTES_MAX).toString('utf8');
  return `${cut.slice(0, cut.lastIndexOf('\n'))}\n\n… the rest is in report.md\n`;
}
