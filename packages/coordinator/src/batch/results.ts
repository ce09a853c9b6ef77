// The results of a batch, one row per task: the content of results.ndjson and the source of all reports. Pure.

import type { Failure } from '@drover/protocol/failures';
import type { Usage } from '@drover/protocol/messages';
import type { TaskRow, TaskStatus } from '@drover/protocol/run';

/** The status of a task, plus a value of its own for tasks without changes. */
export type ResultStatus = Exclude<TaskStatus, 'done'> | 'no_change';

export type Result = {
  readonly task: string;
  readonly title: string;
  readonly status: ResultStatus;
  readonly cached: boolean;
  readonly repository: string;
  readonly group: string;
  readonly files: readonly string[]; // the selected files
  readonly changed: readonly string[];
  readonly attempts: number;
  readonly usage: Usage;
  readonly cost?: number; // US dollars; absent if the price is unknown
  readonly ms: number;
  readonly summary?: string;
  readonly reason?: string;
  readonly failure?: Failure;
  readonly patch?: string; // path inside the output folder
  readonly run: string;
};

type Selection = { readonly group: string; readonly files: readonly string[] };

export type About = {
  readonly run: string;
  readonly repository: string;
  readonly selected: ReadonlyMap<string, Selection>; // by task id
};

export function batchResultOfTask(row: TaskRow, { run, repository, selected }: About): Result {
  const { task, title, attempts, usage, cost, elapsedMs = 0, summary, reason, failure } = row;
  const { group = task, files = [] } = selected.get(task) ?? {};
  return {
    task,
    title,
    status: batchStatusOfTask(row.status),
    cached: row.cached === true,
    repository,
    group,
    files,
    changed: row.files,
    attempts,
    usage,
    ...(cost !== undefined && { cost }),
    ms: elapsedMs,
    ...(summary !== undefined && summary !== '' && { summary }),
    ...(reason !== undefined && { reason }),
    ...(failure !== undefined && { failure }),
    run,
  };
}

export function isGoodBatchResult({ status }: Pick<Result, 'status'>): boolean {
  return status === 'landed' || status === 'no_change';
}

export type Counts = { readonly [Status in ResultStatus]: number } & { readonly cached: number };

export function countBatchResults(results: readonly Result[]): Counts {
  const count = (status: ResultStatus) => results.filter((each) => each.status === status).length;
  return {
    landed: count('landed'),
    no_change: count('no_change'),
    failed: count('failed'),
    gate_failed: count('gate_failed'),
    conflict: count('conflict'),
    skipped: count('skipped'),
    cancelled: count('cancelled'),
    cached: results.filter(({ cached }) => cached).length,
  };
}

function batchStatusOfTask(status: TaskStatus): ResultStatus {
  return status === 'done' ? 'no_change' : status;
}
