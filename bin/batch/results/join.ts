// Joins the shards of one batch: their results, patches and reports in one folder.
//
// Guarantees
//   1. All parts belong to the same batch: one spec, one commit, each shard once.
//   2. A missing shard makes the batch incomplete.
//   3. Reads only inside the parts and writes only inside `out`, even if a part names other paths.
//   4. Names shards that change the same file, because their patches may conflict.

import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize } from 'node:path';
import { countBatchResults, isGoodBatchResult, type Result } from '@drover/coordinator/batch/results';
import { writeBatchFileWhole } from '@drover/coordinator/batch/whole-file';
import { UsageError } from '@drover/core/errors';
import { MB, requireOwnFile } from '@drover/core/files/own-file';
import { sumUsage, NO_USAGE } from '@drover/core/model/spending/usage';
import type { Redactor } from '@drover/core/redaction/redactor';
import { exitCode } from '../../start/exit-code.ts';
import type { Within } from '../history.ts';
import { FILES, openBatchOutputFolder, writeBatchOutputs } from './outputs.ts';
import type { BatchSummary } from './summary.ts';

const FOLDERS_MAX = 10_000;
// A shard's results and patches grow with its tasks.
const OUTPUT_BYTES_MAX = 256 * MB;
const OVERLAPS_NAMED_MAX = 10;

type Part = { readonly folder: string; readonly summary: BatchSummary; readonly results: readonly Result[] };

export type Joined = { readonly summary: BatchSummary; readonly results: readonly Result[] };

/** Reads folders that hold the outputs of a shard, or subfolders that do, as CI systems unpack them. */
async function readShardParts(folders: readonly string[]): Promise<readonly Part[]> {
  const found = (await Promise.all(folders.map(listPartFolders))).flat();
  if (found.length === 0) throw new UsageError(`--merge: there is no ${FILES.results} in ${folders.join(', ')}`);
  return Promise.all(found.map(readShardPart));
}

async function listPartFolders(folder: string): Promise<readonly string[]> {
  if (existsSync(join(folder, FILES.results))) return [folder];
  const names = await readdir(folder, { recursive: true }).catch((error: unknown) => {
    throw new UsageError(`--merge: ${folder} cannot be read`, { cause: error });
  });
  return names
    .filter((name) => name.split('/').at(-1) === FILES.results)
    .map((name) => join(folder, dirname(name)))
    .slice(0, FOLDERS_MAX)
    .toSorted();
}

async function readShardPart(folder: string): Promise<Part> {
  try {
    const summary = JSON.parse((await readShardOutput(folder, FILES.summary)).toString('utf8')) as BatchSummary;
    const rows = (await readShardOutput(folder, FILES.results)).toString('utf8').split('\n');
    const results = rows.filter((row) => row !== '').map((row) => JSON.parse(row) as Result);
    for (const { patch } of results) checkShardPatchPath(patch, folder);
    return { folder, summary, results };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${folder} does not hold the outputs of a batch, or not all of them`, {
      cause: error,
    });
  }
}

/** Rejects paths outside the folder: a part may come from another machine. */
function checkShardPatchPath(patch: unknown, folder: string): void {
  if (patch === undefined) return;
  const isInside =
    typeof patch === 'string' &&
    patch.endsWith('.patch') &&
    !isAbsolute(patch) &&
    !normalize(patch).split('/').includes('..') &&
    normalize(patch) !== FILES.combined;
  if (isInside) return;
  const path = join(folder, FILES.results);
  throw new UsageError(`--merge: ${path} names the patch ${JSON.stringify(patch)}, which is no patch in that folder`);
}

async function readShardOutput(folder: string, name: string): Promise<Buffer> {
  const path = join(folder, name);
  return requireOwnFile({ path, bytesMax: OUTPUT_BYTES_MAX }, ({ kind, problem, fix }) =>
    kind === 'missing'
      ? `${folder} does not hold the outputs of a batch, or not all of them`
      : `--merge: ${path} ${problem}; ${fix}`,
  );
}

/** Throws UsageError if the parts belong to different batches. */
function joinParts(parts: readonly Part[]): Joined {
  const [first] = parts;
  if (first === undefined) throw new UsageError('--merge: there is nothing to join');
  for (const { folder, summary } of parts) checkSameBatch(first, { folder, summary });
  const shards = Map.groupBy(parts, ({ summary: { shard } }) =>
    shard === undefined ? '' : `${shard.index}/${shard.count}`,
  );
  for (const [shard, same] of shards)
    if (same.length > 1)
      throw new UsageError(`--merge: ${same.map(({ folder }) => folder).join(' and ')} hold the same shard ${shard}`);
  const results = parts
    .flatMap((part) => part.results)
    .toSorted((a, b) => (a.task < b.task ? -1 : a.task > b.task ? 1 : 0));
  const { base, total } = first.summary;
  const summary = sumPartSummaries(
    parts,
    missingShards(parts).map((shard) => `shard ${shard} is missing`),
  );
  const reasons = [summary.reason ?? [], shardOverlapWords(parts)].flat();
  // As for a whole batch: if any task landed, the merged tree passed its gates.
  const isGreen = summary.exitCode === exitCode.gate && results.some(({ status }) => status === 'landed');
  const more = {
    ...(isGreen && { exitCode: exitCode.incomplete }),
    ...(reasons.length > 0 && { reason: reasons.join('\n') }),
  };
  return { results, summary: { ...summary, base, total, ...more } };
}

/** Names the files that several shards change; empty if there are none. */
function shardOverlapWords(parts: readonly Part[]): readonly string[] {
  const changed = parts.map(({ results }) => {
    const landed = results.filter(({ status }) => status === 'landed');
    return new Set(landed.flatMap(({ repository, changed: own }) => own.map((path) => `${repository}\0${path}`)));
  });
  const times = Map.groupBy(
    changed.flatMap((paths) => [...paths]),
    (path) => path,
  );
  const shared = [...times].flatMap(([path, { length }]) => (length > 1 ? [path.split('\0')[1] ?? ''] : []));
  if (shared.length === 0) return [];
  const more = shared.length > OVERLAPS_NAMED_MAX ? ` and ${shared.length - OVERLAPS_NAMED_MAX} more` : '';
  const files = `${shared.slice(0, OVERLAPS_NAMED_MAX).join(', ')}${more}`;
  return [
    `several shards change ${files}, so ${FILES.combined} may not apply: apply their patches one by one with git apply --3way`,
  ];
}

/** Adds up the summaries. A missing part counts as not done. */
function sumPartSummaries(parts: readonly Part[], missing: readonly string[]): BatchSummary {
  const summaries = parts.map(({ summary }) => summary);
  const codes = [...summaries.map((each) => each.exitCode), ...(missing.length > 0 ? [exitCode.incomplete] : [])];
  const reasons = new Set([...missing, ...summaries.flatMap(({ reason }) => reason ?? [])]);
  const costs = summaries.flatMap(({ cost }) => cost ?? []);
  const isDone = missing.length === 0 && summaries.every(({ outcome }) => outcome === 'done');
  const { batch = '', spec = '', model = '' } = summaries[0] ?? {};
  return {
    v: 1,
    batch,
    spec,
    model,
    base: summaries.map((each) => each.base).join(' '),
    startedAt: summaries.map((each) => each.startedAt).toSorted()[0] ?? '',
    total: summaries.reduce((sum, { total }) => sum + total, 0),
    outcome: isDone ? 'done' : 'incomplete',
    exitCode: mostSevereBatchExitCode(codes),
    ...(reasons.size > 0 && { reason: [...reasons].join('\n') }),
    usage: summaries.reduce((sum, { usage }) => sumUsage(sum, usage), NO_USAGE),
    ...(costs.length > 0 && { cost: costs.reduce((sum, cost) => sum + cost) }),
  };
}

export type Verdict = {
  /** Exit code, if known; otherwise derived from the codes of the parts. */
  readonly code?: number;
  readonly junit?: string | undefined;
};

/** Joins the outputs of several repositories. */
export async function joinRepositories({ out, names }: Within, { code, junit }: Verdict): Promise<Joined> {
  // The summary is written after the results, so its existence proves both.
  const there = names.filter((name) => existsSync(join(out, name, FILES.summary)));
  const parts = await Promise.all(there.map((name) => readShardPart(join(out, name))));
  const missing = names.filter((name) => !there.includes(name)).map((name) => `${name} was not begun`);
  const results = parts.flatMap(({ results: own }, at) =>
    own.map((result) => (result.patch === undefined ? result : { ...result, patch: `${there[at]}/${result.patch}` })),
  );
  const summary = sumPartSummaries(parts, missing);
  const whole = { results, summary: { ...summary, exitCode: mostSevereBatchExitCode([summary.exitCode, code ?? 0]) } };
  await writeBatchOutputs({ out, ...whole, junit, appendTo: [] });
  return whole;
}

type Compared = Pick<Part, 'folder' | 'summary'>;

function checkSameBatch(first: Compared, other: Compared): void {
  const keys = ['batch', 'spec', 'base'] as const;
  const words = { batch: 'the batch', spec: 'the spec', base: 'the commit' };
  const different = keys.find((key) => first.summary[key] !== other.summary[key]);
  if (different !== undefined)
    throw new UsageError(
      `--merge: ${first.folder} and ${other.folder} differ in ${words[different]}; join parts of one batch`,
    );
}

function missingShards(parts: readonly Part[]): readonly string[] {
  const count = parts[0]?.summary.shard?.count ?? 1;
  const there = new Set(parts.map(({ summary: { shard } }) => shard?.index ?? 1));
  return Array.from({ length: count }, (_, at) => at + 1)
    .filter((index) => !there.has(index))
    .map((index) => `${index}/${count}`);
}

// The exit code is the most severe one of the parts, in this order.
const BY_WEIGHT: readonly number[] = [
  exitCode.internal,
  exitCode.terminated,
  exitCode.interrupted,
  exitCode.provider,
  exitCode.budget,
  exitCode.deadline,
  exitCode.blocked,
  exitCode.gate,
  exitCode.conflict,
  exitCode.incomplete,
];

export function mostSevereBatchExitCode(codes: readonly number[]): number {
  return BY_WEIGHT.find((code) => codes.includes(code)) ?? Math.max(0, ...codes);
}

export type JoinOrder = {
  readonly folders: readonly string[];
  readonly out: string;
  readonly junit: string | undefined;
  readonly appendTo: readonly string[];
  /** Hides the secrets of this machine, which the machine that made the parts does not know. */
  readonly redactor: Redactor;
};

/** Writes the joined outputs, and returns them. */
export async function joinBatches({ folders, out, junit, appendTo, redactor }: JoinOrder): Promise<Joined> {
  const parts = await readShardParts(folders);
  const whole = redactor.value(joinParts(parts) as never) as Joined;
  await openBatchOutputFolder(out);
  const patches: string[] = [];
  for (const { folder, results } of parts) {
    for (const { patch } of results) {
      if (patch === undefined) continue;
      await mkdir(dirname(join(out, patch)), { recursive: true });
      if (join(folder, patch) !== join(out, patch))
        await writeFile(join(out, patch), await readShardOutput(folder, patch));
    }
    patches.push((await readShardOutput(folder, FILES.combined)).toString('latin1'));
  }
  await writeBatchFileWhole(join(out, FILES.combined), patches.join(''), 'latin1');
  await writeBatchOutputs({ out, ...whole, junit, appendTo });
  return whole;
}

/** Summary of the joined batch in one line, for a user. */
export function joinedBatchesLine({ summary, results }: Joined, out: string): string {
  const { landed, no_change: same, cached } = countBatchResults(results);
  const good = results.filter(isGoodBatchResult).length;
  const figures = [`${landed} landed`, `${same} had nothing to change`, `${cached} from the cache`].join(', ');
  const reason = summary.reason === undefined ? '' : `\n${summary.reason}`;
  return `${summary.batch}: ${good} of ${results.length} tasks are done (${figures}); the report is ${join(out, FILES.report)}${reason}\n`;
}
