// The history of a run, folded from its journal: everything the run needs to resume. The same records always give the
// same history.

import { notRun } from '@drover/core/agent/calls/calls';
import type { Recorded } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import { SEQ_JUMP } from '@drover/core/journal/cut-off';
import { pastOf, type Past } from '@drover/core/journal/history';
import type { JsonObject } from '@drover/protocol/json';
import type { Message } from '@drover/protocol/messages';
import type { RunSettings } from '@drover/protocol/run';
import { SUBMIT_PLAN } from '@drover/core/tools/submit-plan';
import type { Spending } from '../admission/purse.ts';
import { TaskLedger } from './tasks.ts';
import { gateKey } from '../merge/gate.ts';
import { SpendingFold } from '../view/spending.ts';
import { WorkedTime } from '../view/worked-time.ts';

export type RunHistory = {
  readonly settings: RunSettings;
  readonly startedAt: string;
  readonly activeMs: number; // time in which the run was at work; what lay between is left out
  readonly lastSeq: number;
  readonly spent: Spending;
  readonly lostRequests: number; // that were under way at the end, and count as spent in full
  readonly plans: readonly PlanRecord[];
  readonly ledger: TaskLedger; // as it is when the run is resumed
  readonly gates: ReadonlyMap<string, GateHistory>; // by gateKey
  readonly coordinator: Past | undefined;
  readonly isOver: boolean; // nothing is left to do
  readonly records: readonly Recorded[];
};

type PlanRecord = Extract<Recorded, { readonly type: 'plan_ready' }>;
type GateHistory = Pick<Extract<Recorded, { readonly type: 'gate_end' }>, 'passed' | 'flaky' | 'output'>;

export type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export function readRunHistory(kept: readonly JsonObject[]): RunHistory | undefined {
  // Our own records, each under its seal: they are what they were when they were written.
  const records = kept as unknown as readonly Recorded[];
  const begun = records.find((record) => record.type === 'run_start');
  if (begun === undefined) return undefined;
  // A resume may change some of the settings.
  const start = records.findLast((record) => record.type === 'run_start') ?? begun;
  const ledger = new TaskLedger();
  const gates = new Map<string, GateHistory>();
  const spending = new SpendingFold();
  const planning = new PlanningFold(ledger);
  const time = new WorkedTime();
  for (const record of records) {
    time.take(record);
    ledger.take(record, record);
    planning.take(record);
    spending.take(record);
    // A task's own gates are run in its workspace, where there may be more than the tree.
    if (record.type === 'gate_end' && record.task === undefined)
      gates.set(gateKey(record.tree, record.command), record);
    // A gate may fail for a while only, and the user wants to try again.
    if (record.type === 'tasks_reopened') for (const [key, { passed }] of gates) if (!passed) gates.delete(key);
    // The cause may be gone: a resumed run tries the base again.
    if (record.type === 'run_end' && record.failure?.kind === 'base.failed')
      for (const [key, { passed }] of gates) if (!passed) gates.delete(key);
  }
  ledger.resume();
  planning.resume();
  const { lostRequests, ...spent } = spending.end();
  const ending = records.findLast((record) => record.type === 'run_end');
  return {
    settings: settingsIn(start),
    startedAt: begun.at,
    activeMs: time.ms,
    lastSeq: records.reduce((highest, { seq }) => Math.max(highest, seq), 0) + SEQ_JUMP,
    spent,
    lostRequests,
    plans: records.filter((record) => record.type === 'plan_ready'),
    ledger,
    gates,
    coordinator: pastOf(planning.records as unknown as readonly JsonObject[]),
    isOver: ending?.outcome === 'done',
    records,
  };
}

/** The coordinator's records. A plan with open tasks leaves its call of `submit_plan` open when the run resumes. */
class PlanningFold {
  records: Recorded[] = [];
  readonly #ledger: TaskLedger;
  #callId: string | undefined; // of the last plan
  #ended: Failure | undefined; // why the run ended, unless it was resumed since

  constructor(ledger: TaskLedger) {
    this.#ledger = ledger;
  }

  /** The ledger must have the record already. */
  take(record: Recorded): void {
    if (record.type === 'run_start' && record.resumed) this.resume();
    if (record.type === 'plan_ready') this.#callId = record.callId;
    if (record.type === 'run_end') this.#ended = record.failure;
    if (record.worker === 0 && record.task === undefined) this.records.push(record);
  }

  /** A plan that was declined or interrupted at the question is shown again. */
  resume(): void {
    const isPlan = (record: Recorded) => record.type === 'tool_execution_end' && record.name === SUBMIT_PLAN;
    const last = this.records.findLast(isPlan);
    const isUnanswered =
      this.#ended !== undefined &&
      last?.type === 'tool_execution_end' &&
      last.callId !== this.#callId &&
      last.output === notRun(this.#ended);
    if (isUnanswered) this.records = withCallOpen(this.records, last.callId);
    this.#ended = undefined;
    if (this.#ledger.openTasks().length > 0) this.records = withCallOpen(this.records, this.#callId);
  }
}

/** The coordinator's records up to the call's end. Later answers are dropped; their usage still counts. */
function withCallOpen(records: Recorded[], callId: string | undefined): Recorded[] {
  const end = records.findIndex((record) => record.type === 'tool_execution_end' && record.callId === callId);
  if (callId === undefined || end < 0) return records;
  return [...records.slice(0, end), ...records.slice(end).filter(({ type }) => type === 'usage')];
}

type Whose = { readonly task: string; readonly attempt: number };

const NO_SETTINGS = new Set(['v', 'seq', 'at', 'run', 'type', 'resumed']);

/** The settings of the run. They also hold after a resume. */
function settingsIn(start: object): RunSettings {
  return Object.fromEntries(Object.entries(start).filter(([key]) => !NO_SETTINGS.has(key))) as unknown as RunSettings;
}

/** The history of one worker. */
export function readAgentHistory(
  { records }: Pick<RunHistory, 'records'>,
  whose: Whose,
  seed: readonly Message[],
): Past | undefined {
  const own = records.filter(({ task, attempt }) => task === whose.task && attempt === whose.attempt);
  return pastOf(own as unknown as readonly JsonObject[], seed);
}

/** The warning about requests that were under way at a crash. */
export function lostWords(lost: number): string | undefined {
  if (lost === 0) return undefined;
  const [requests, they] = lost === 1 ? ['a request was', 'it'] : [`${lost} requests were`, 'they'];
  return `${requests} under way when the run was interrupted, and what ${they} cost is unknown: the most that ${they} can have cost counts as spent`;
}
