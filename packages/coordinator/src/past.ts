// What the journal of a run says has happened, as what the run needs to go on after a crash or an
// interruption. A fold: the same records always give the same past.

import type { Recorded } from '@drover/core/events';
import { pastOf, type Past } from '@drover/core/journal/history';
import type { JsonObject } from '@drover/core/json';
import type { Message, Usage } from '@drover/core/model/protocol';
import { NO_USAGE, sumUsage } from '@drover/core/model/usage';
import type { RunSettings, TaskStatus } from '@drover/core/task/run';
import type { Spending } from './admission/purse.ts';

// As for a session: deltas have numbers too, and aren't kept.
const SEQ_JUMP = 1_000_000;

export type RunPast = {
  readonly settings: RunSettings;
  readonly startedAt: string;
  readonly activeMs: number; // time in which the run was at work; what lay between is left out
  readonly lastSeq: number;
  readonly spent: Spending;
  readonly plans: readonly PlanPast[];
  readonly tasks: ReadonlyMap<string, TaskPast>;
  readonly head: string; // of what has landed
  readonly landed: ReadonlyMap<string, string>; // the head with each task's work, in the order of landing
  readonly gates: ReadonlyMap<string, GatePast>; // by gateKey
  readonly coordinator: Past | undefined;
  readonly isOver: boolean; // nothing is left to do
  readonly records: readonly Recorded[];
};

export type PlanPast = Extract<Recorded, { readonly type: 'plan_ready' }>;
export type GatePast = Pick<Extract<Recorded, { readonly type: 'gate_end' }>, 'passed' | 'flaky' | 'output'>;

export type TaskPast = {
  readonly attempts: number;
  readonly failures: number; // attempts that failed and were followed by another
  readonly conflicts: number;
  /** Settled for good. */
  readonly status?: TaskStatus;
  /** An attempt that was at work, or was interrupted. */
  readonly open?: { readonly attempt: number; readonly base: string };
  /** An attempt that has finished and waits to land. */
  readonly finished?: Finished;
  /** What the next attempt has to know. */
  readonly before?: { readonly base?: string; readonly reason: string };
};

export type Finished = {
  readonly attempt: number;
  readonly commit?: string;
  readonly files: readonly string[];
  readonly summary: string;
};

export function gateKey(tree: string, command: string): string {
  return `${tree} ${command}`;
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export function runPastOf(kept: readonly JsonObject[]): RunPast | undefined {
  // Our own records, each under its seal: they are what they were when they were written.
  const records = kept as unknown as readonly Recorded[];
  const start = records.find((record) => record.type === 'run_start');
  if (start === undefined) return undefined;
  const tasks = new Map<string, Writable<TaskPast>>();
  const gates = new Map<string, GatePast>();
  let total = NO_USAGE;
  const byTask = new Map<string, Usage>();
  const landed = new Map<string, string>();
  let head = start.base;
  for (const record of records) {
    if (record.task !== undefined) foldTask(tasks, record.task, record);
    if (record.type === 'merge_end' && record.outcome === 'landed') {
      head = record.commit ?? head;
      if (record.task !== undefined) landed.set(record.task, head);
    }
    if (record.type === 'gate_end') gates.set(gateKey(record.tree, record.command), record);
    if (record.type === 'usage') {
      total = sumUsage(total, record.usage);
      if (record.task !== undefined) byTask.set(record.task, sumUsage(byTask.get(record.task) ?? NO_USAGE, record.usage));
    }
  }
  const { goal, model, repository, base, branch, notIncluded, workers, seeding, deliver, cap, timeoutMs } = start;
  const { roundsMax, tasksMax, attemptsMax, taskLimits, failFast } = start;
  const ending = records.findLast((record) => record.type === 'run_end');
  return {
    settings: {
      ...{ goal, model, repository, base, notIncluded, workers, seeding, deliver, gates: start.gates },
      ...{ roundsMax, tasksMax, attemptsMax, taskLimits, failFast },
      ...(branch !== undefined && { branch }),
      ...(cap !== undefined && { cap }),
      ...(timeoutMs !== undefined && { timeoutMs }),
    },
    startedAt: start.at,
    activeMs: activeMsOf(records),
    lastSeq: records.reduce((highest, { seq }) => Math.max(highest, seq), 0) + SEQ_JUMP,
    spent: { total, tasks: byTask },
    plans: records.filter((record) => record.type === 'plan_ready'),
    tasks,
    head,
    landed,
    gates,
    coordinator: pastOf(recordsOf(records, { worker: 0 }) as unknown as readonly JsonObject[]),
    isOver: ending?.outcome === 'done',
    records,
  };
}

export type Whose = { readonly worker: 0 } | { readonly task: string; readonly attempt: number };

/** What one agent of the run went through. */
export function agentPastOf({ records }: RunPast, whose: Whose, seed: readonly Message[]): Past | undefined {
  return pastOf(recordsOf(records, whose) as unknown as readonly JsonObject[], seed);
}

function recordsOf(records: readonly Recorded[], whose: Whose): readonly Recorded[] {
  return 'task' in whose
    ? records.filter(({ task, attempt }) => task === whose.task && attempt === whose.attempt)
    : records.filter(({ worker, task }) => worker === 0 && task === undefined);
}

function foldTask(tasks: Map<string, Writable<TaskPast>>, id: string, record: Recorded): void {
  const task: Writable<TaskPast> = tasks.get(id) ?? { attempts: 0, failures: 0, conflicts: 0 };
  tasks.set(id, task);
  switch (record.type) {
    case 'task_start':
      task.attempts = record.attempt ?? task.attempts;
      task.open = { attempt: task.attempts, base: record.base };
      // A later plan may name a task again that failed.
      delete task.status;
      delete task.finished;
      return;
    case 'task_end':
      return foldEnd(task, record);
    case 'merge_end':
      delete task.finished;
      if (record.again) {
        task.conflicts += 1;
        const { onto: base } = record;
        task.before = { reason: record.reason ?? '', ...(base !== undefined && { base }) };
      } else task.status = record.outcome;
      return;
    default:
      return;
  }
}

function foldEnd(task: Writable<TaskPast>, end: Extract<Recorded, { readonly type: 'task_end' }>): void {
  const { status, again, reason = '', commit, files, summary = '' } = end;
  // One that was interrupted goes on where it was.
  if (status === 'cancelled') return;
  delete task.open;
  if (again) {
    task.failures += 1;
    task.before = { reason };
    return;
  }
  if (status !== 'finished') {
    task.status = status;
    return;
  }
  if (commit === undefined) task.status = 'done';
  else task.finished = { attempt: end.attempt ?? task.attempts, commit, files, summary };
}

function activeMsOf(records: readonly Recorded[]): number {
  let total = 0;
  let begun: number | undefined;
  let last = 0;
  for (const { type, at } of records) {
    if (type === 'run_start') {
      if (begun !== undefined) total += last - begun;
      begun = Date.parse(at);
    }
    last = Date.parse(at);
  }
  return begun === undefined ? 0 : total + last - begun;
}
