// What the journal of a run says has happened, as what the run needs to go on after a crash or an
// interruption. A fold: the same records always give the same past.

import { notRun } from '@drover/core/agent/calls/calls';
import type { Recorded } from '@drover/protocol/events';
import { type Failure, FAILURES } from '@drover/protocol/failures';
import { SEQ_JUMP } from '@drover/core/journal/cut-off';
import { pastOf, type Past } from '@drover/core/journal/history';
import type { JsonObject } from '@drover/protocol/json';
import type { Message } from '@drover/protocol/messages';
import { isDone, type RunSettings, type TaskStatus } from '@drover/protocol/run';
import { SUBMIT_PLAN } from '@drover/core/tools/submit-plan';
import type { Spending } from '../admission/purse.ts';
import { reopened, withCallOpen } from './resume.ts';
import { gateKey } from '../merge/gate.ts';
import { SpendingFold } from '../view/spending.ts';

export type RunHistory = {
  readonly settings: RunSettings;
  readonly startedAt: string;
  readonly activeMs: number; // time in which the run was at work; what lay between is left out
  readonly lastSeq: number;
  readonly spent: Spending;
  readonly lostRequests: number; // that were under way at the end, and count as spent in full
  readonly plans: readonly PlanRecord[];
  readonly tasks: ReadonlyMap<string, TaskHistory>;
  readonly head: string; // of what has landed
  readonly landed: ReadonlyMap<string, string>; // the head with each task's work, in the order of landing
  readonly gates: ReadonlyMap<string, GateHistory>; // by gateKey
  readonly conflicts: readonly string[]; // tasks that were sent to the end, each time
  readonly coordinator: Past | undefined;
  readonly isOver: boolean; // nothing is left to do
  readonly records: readonly Recorded[];
};

type PlanRecord = Extract<Recorded, { readonly type: 'plan_ready' }>;
type GateHistory = Pick<Extract<Recorded, { readonly type: 'gate_end' }>, 'passed' | 'flaky' | 'output'>;

export type TaskHistory = {
  readonly attempts: number;
  readonly failures: number; // attempts that failed and were followed by another
  readonly conflicts: number;
  /** Settled for good. */
  readonly status?: TaskStatus;
  readonly failure?: Failure;
  /** An attempt that was at work, or was interrupted. */
  readonly open?: { readonly attempt: number; readonly base: string };
  /** An attempt that has finished and waits to land. */
  readonly finished?: Finished;
  /** What the next attempt has to know. */
  readonly before?: Before;
};

/** Why there is another attempt; after a conflict, of what with what. */
export type Before = {
  readonly reason: string;
  readonly conflict?: { readonly onto: string; readonly commit: string };
};

type Finished = {
  readonly attempt: number;
  readonly commit?: string;
  readonly files: readonly string[];
  readonly summary: string;
};

export type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export function readRunHistory(kept: readonly JsonObject[]): RunHistory | undefined {
  // Our own records, each under its seal: they are what they were when they were written.
  const records = kept as unknown as readonly Recorded[];
  const begun = records.find((record) => record.type === 'run_start');
  if (begun === undefined) return undefined;
  // Whoever goes on may change some of what it was started with.
  const start = records.findLast((record) => record.type === 'run_start') ?? begun;
  const tasks = new Map<string, Writable<TaskHistory>>();
  const gates = new Map<string, GateHistory>();
  const spending = new SpendingFold();
  const landed = new Map<string, string>();
  let head = start.base;
  const planning = new PlanningFold(tasks);
  for (const record of records) {
    planning.take(record);
    spending.take(record);
    if (record.task !== undefined) foldTask(tasks, record.task, record);
    if (record.type === 'merge_end' && record.outcome === 'landed') {
      head = record.commit ?? head;
      if (record.task !== undefined) landed.set(record.task, head);
    }
    // A task's own gates are run in its workspace, where there may be more than the tree.
    if (record.type === 'gate_end' && record.task === undefined)
      gates.set(gateKey(record.tree, record.command), record);
  }
  planning.takeUp();
  const { lostRequests, ...spent } = spending.end();
  const ending = records.findLast((record) => record.type === 'run_end');
  return {
    settings: settingsIn(start),
    startedAt: begun.at,
    activeMs: activeMsOf(records),
    lastSeq: records.reduce((highest, { seq }) => Math.max(highest, seq), 0) + SEQ_JUMP,
    spent,
    lostRequests,
    plans: records.filter((record) => record.type === 'plan_ready'),
    tasks,
    head,
    landed,
    gates,
    conflicts: records.flatMap((each) => (each.type === 'merge_end' && each.again ? [each.task ?? ''] : [])),
    coordinator: pastOf(planning.records as unknown as readonly JsonObject[]),
    isOver: ending?.outcome === 'done',
    records,
  };
}

/** What the coordinator went through, and the plan that it waits for. */
class PlanningFold {
  records: Recorded[] = [];
  readonly #tasks: Map<string, Writable<TaskHistory>>;
  #plan: PlanRecord | undefined;
  #ended: Failure | undefined; // why the run had ended, as far as it has not gone on since

  constructor(tasks: Map<string, Writable<TaskHistory>>) {
    this.#tasks = tasks;
  }

  take(record: Recorded): void {
    if (record.type === 'run_start' && record.resumed) this.takeUp();
    if (record.type === 'plan_ready') this.#planAnew(record);
    if (record.type === 'run_end') this.#ended = record.failure;
    if (record.worker === 0 && record.task === undefined) this.records.push(record);
  }

  /** A task that did not work out and is named again begins anew; only its attempts go on counting. */
  #planAnew(plan: PlanRecord): void {
    this.#plan = plan;
    for (const { id } of plan.tasks) {
      const { status, attempts } = this.#tasks.get(id) ?? { attempts: 0 };
      const isAgain = status !== undefined && !isDone(status);
      if (isAgain) this.#tasks.set(id, { attempts, failures: 0, conflicts: 0 });
    }
  }

  /** The run goes on. A plan that it ended with, declined or interrupted at the question, is shown again. */
  takeUp(): void {
    const isPlan = (record: Recorded) => record.type === 'tool_execution_end' && record.name === SUBMIT_PLAN;
    const last = this.records.findLast(isPlan);
    const isUnanswered =
      this.#ended !== undefined &&
      last?.type === 'tool_execution_end' &&
      last.callId !== this.#plan?.callId &&
      last.output === notRun(this.#ended);
    if (isUnanswered) this.records = withCallOpen(this.records, last.callId);
    this.#ended = undefined;
    const open = reopened(this.#plan?.tasks ?? [], this.#tasks);
    if (open.length > 0) this.records = withCallOpen(this.records, this.#plan?.callId);
  }
}

export type Whose = { readonly task: string; readonly attempt: number };

/** What came of it is on a branch of its own, or was nothing: the attempt's workspace holds the only copy of no work. */
export function isKept({ attempts, open, finished, status, failure }: TaskHistory, attempt: number): boolean {
  // It had its workspace, and waited for its turn.
  if (attempt > attempts) return true;
  if (open !== undefined) return false;
  // What a failed attempt left is committed, too, unless that is what failed; also where another is to follow.
  if (status === 'failed' || status === undefined)
    return failure === undefined || !FAILURES[failure.kind].keepsWorkspace;
  return finished !== undefined || KEPT.has(status);
}

const KEPT: ReadonlySet<TaskStatus> = new Set(['landed', 'done', 'conflict', 'gate_failed']);

const NO_SETTINGS = new Set(['v', 'seq', 'at', 'run', 'type', 'resumed']);

/** All that the run was started with; whatever it is, it holds for whoever goes on. */
function settingsIn(start: object): RunSettings {
  return Object.fromEntries(Object.entries(start).filter(([key]) => !NO_SETTINGS.has(key))) as unknown as RunSettings;
}

/** What one worker of the run went through. */
export function readAgentHistory({ records }: RunHistory, whose: Whose, seed: readonly Message[]): Past | undefined {
  const own = records.filter(({ task, attempt }) => task === whose.task && attempt === whose.attempt);
  return pastOf(own as unknown as readonly JsonObject[], seed);
}

function foldTask(tasks: Map<string, Writable<TaskHistory>>, id: string, record: Recorded): void {
  const task: Writable<TaskHistory> = tasks.get(id) ?? { attempts: 0, failures: 0, conflicts: 0 };
  tasks.set(id, task);
  switch (record.type) {
    case 'task_start':
      task.attempts = record.attempt ?? task.attempts;
      task.open = { attempt: task.attempts, base: record.base };
      delete task.status;
      delete task.failure;
      delete task.finished;
      return;
    case 'task_end':
      return foldEnd(task, record);
    case 'merge_end':
      if (record.again) {
        task.conflicts += 1;
        const { onto, reason = '' } = record;
        const commit = task.finished?.commit;
        task.before = { reason, ...(onto !== undefined && commit !== undefined && { conflict: { onto, commit } }) };
      } else task.status = record.outcome;
      delete task.finished;
      return;
    default:
      return;
  }
}

function foldEnd(task: Writable<TaskHistory>, end: Extract<Recorded, { readonly type: 'task_end' }>): void {
  const { status, again, reason = '', commit, files, summary = '' } = end;
  // One that was interrupted goes on where it was.
  if (status === 'cancelled') return;
  delete task.open;
  if (end.failure !== undefined) task.failure = end.failure;
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
