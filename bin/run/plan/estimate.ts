// Estimates cost and time of a plan from the journals of earlier runs with the same model.

import { readFile } from 'node:fs/promises';
import { longestChainOfPlan } from '@drover/coordinator/plan/graph';
import { runJournalPath } from '@drover/coordinator/run/journal';
import { readJournalContents } from '@drover/core/journal/file/format';
import { listJournalIds } from '@drover/core/journal/listing';
import type { Recorded } from '@drover/protocol/events';
import type { PlannedTask } from '@drover/protocol/plan';
import { isDone, type RunSettings, type TaskRow } from '@drover/protocol/run';
import { statIfThere } from '@drover/core/files/lookup';

const SAMPLES_MAX = 12;
const READ_BYTES_MAX = 32_000_000; // of all journals together
const JOURNAL_BYTES_MAX = 8_000_000;

export type Estimate = {
  readonly ms: number;
  readonly cost?: number; // US dollars; absent where no price is known
  readonly tasks: number; // that it is based on
  readonly runs: number;
  readonly isHere: boolean; // all of them in this repository
};

type Sample = { readonly repository: string; readonly rows: readonly TaskRow[] };

/** Undefined if there is nothing to base it on. */
export async function estimatePlan(
  tasks: readonly PlannedTask[],
  settings: Pick<RunSettings, 'model' | 'repository' | 'workers'>,
  home: string,
): Promise<Estimate | undefined> {
  const samples = await readEarlierRuns(home, settings.model);
  const here = samples.filter(({ repository }) => repository === settings.repository);
  const used = here.length > 0 ? here : samples;
  const rows = used.flatMap((sample) => sample.rows);
  const count = rows.length;
  if (count === 0) return undefined;
  const usualMs = rows.reduce((sum, { elapsedMs = 0 }) => sum + elapsedMs, 0) / count;
  const costs = rows.flatMap(({ cost }) => cost ?? []);
  const usualCost = costs.length === 0 ? undefined : costs.reduce((sum, cost) => sum + cost, 0) / costs.length;
  const workers = Math.max(1, settings.workers);
  return {
    ms: usualMs * Math.max(longestChainOfPlan(tasks), Math.ceil(tasks.length / workers)),
    ...(usualCost !== undefined && { cost: usualCost * tasks.length }),
    tasks: count,
    runs: used.length,
    isHere: here.length > 0,
  };
}

/** The newest runs with this model that finished at least one task. Journals that are too large are left out. */
async function readEarlierRuns(home: string, model: string): Promise<readonly Sample[]> {
  const paths = listJournalIds(home, 'runs').map((id) => runJournalPath(home, id));
  const found = await Promise.all(paths.map(async (path) => ({ path, stats: await statIfThere(path) })));
  const newest = found
    .flatMap(({ path, stats }) => (stats !== undefined && stats.size <= JOURNAL_BYTES_MAX ? [{ path, stats }] : []))
    .toSorted((a, b) => b.stats.mtimeMs - a.stats.mtimeMs);
  const samples: Sample[] = [];
  let bytes = 0;
  for (const { path, stats } of newest) {
    bytes += stats.size;
    if (samples.length === SAMPLES_MAX || bytes > READ_BYTES_MAX) break;
    const sample = await readCostSample(path, model);
    if (sample !== undefined) samples.push(sample);
  }
  return samples;
}

async function readCostSample(path: string, model: string): Promise<Sample | undefined> {
  const records = readJournalContents(await readFile(path)).records as unknown as readonly Recorded[];
  const start = records.findLast((record) => record.type === 'run_start');
  const end = records.findLast((record) => record.type === 'run_end');
  if (start?.model !== model || end === undefined) return undefined;
  const rows = end.tasks.filter(
    ({ status, attempts, elapsedMs }) => isDone(status) && attempts > 0 && elapsedMs !== undefined,
  );
  return rows.length === 0 ? undefined : { repository: start.repository, rows };
}
