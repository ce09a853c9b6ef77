// The history of a run: the one fold over its journal, which makes everything that the run needs to resume.
//
// Guarantees
//   1. The same records always give the same history, also if those of later processes are folded later.
//   2. Each record is folded once. Ledger and state are the resumed run's own from then on.

import { endCallNotRun } from '@drover/core/agent/calls/calls';
import type { Recorded } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import { OpenAnswers, SEQ_JUMP } from '@drover/core/journal/cut-off';
import { foldSessionHistory, type Past } from '@drover/core/journal/history';
import type { JsonObject } from '@drover/protocol/json';
import type { Message } from '@drover/protocol/messages';
import type { RunSettings } from '@drover/protocol/run';
import { SUBMIT_PLAN } from '@drover/core/tools/submit-plan';
import type { Spending } from '../admission/purse.ts';
import { TaskLedger } from './tasks.ts';
import { gateResultKey } from '../merge/gate.ts';
import { RunState } from '../view/state.ts';

type PlanRecord = Extract<Recorded, { readonly type: 'plan_ready' }>;
type GateHistory = Pick<Extract<Recorded, { readonly type: 'gate_end' }>, 'passed' | 'flaky' | 'output'>;

export type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export class RunHistory {
  readonly ledger = new TaskLedger();
  readonly state = new RunState();
  readonly records: Recorded[] = [];
  readonly plans: PlanRecord[] = [];
  readonly gates = new Map<string, GateHistory>(); // by gateKey
  readonly #planning = new PlanningFold(this.ledger);
  readonly #cutOff = new OpenAnswers();
  readonly #attempts = new Map<string, Recorded[]>(); // of attempts without an end, or with a cancelled one
  #begun: RunStart | undefined;
  #start: RunStart | undefined; // the last one: a resume may change some of the settings
  #end: Extract<Recorded, { readonly type: 'run_end' }> | undefined;
  #seq = 0;

  /** Whether the run has begun. Without it, settings and start are not known. */
  get isBegun(): boolean {
    return this.#begun !== undefined;
  }

  get settings(): RunSettings {
    return settingsInRunHistory(this.#start ?? {});
  }

  get startedAt(): string {
    return this.#begun?.at ?? '';
  }

  /** Milliseconds in which the run was at work; the time between its processes is left out. */
  get activeMs(): number {
    return this.state.workedMs;
  }

  get lastSeq(): number {
    return this.#seq + SEQ_JUMP;
  }

  /** Requests that were under way at the end count as spent in full. */
  get spent(): Spending {
    return this.state.spending.spent;
  }

  /** The number of requests that were under way at the end. */
  get lostRequests(): number {
    return this.state.spending.lostRequests;
  }

  get coordinator(): Past | undefined {
    return foldSessionHistory(this.#planning.records as unknown as readonly JsonObject[]);
  }

  /** Whether a process of the run has ended it. */
  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Whether nothing is left to do. */
  get isOver(): boolean {
    return this.#end?.outcome === 'done';
  }

  takeAll(records: readonly JsonObject[]): void {
    // Our own records, each under its seal: they are what they were when they were written.
    for (const record of records as unknown as readonly Recorded[]) this.take(record);
  }

  take(record: Recorded): void {
    this.records.push(record);
    this.#seq = Math.max(this.#seq, record.seq);
    this.ledger.take(record, record);
    this.state.take(record);
    this.#planning.take(record);
    this.#cutOff.take(record);
    this.#takeAttempt(record);
    switch (record.type) {
      case 'run_start':
        this.#begun ??= record;
        this.#start = record;
        return;
      case 'plan_ready':
        this.plans.push(record);
        return;
      case 'gate_end':
        // A task's own gates are run in its workspace, where there may be more than the tree.
        if (record.task === undefined) this.gates.set(gateResultKey(record.tree, record.command), record);
        return;
      case 'tasks_reopened':
        // A gate may fail for a while only, and the user wants to try again.
        return this.#forgetFailedGates();
      case 'run_end':
        this.#end = record;
        // The cause may be gone: a resumed run tries the base again.
        if (record.failure?.kind === 'base.failed') this.#forgetFailedGates();
    }
  }

  /**
   * Makes ledger and coordinator what they are when the run is resumed. Idempotent. Later records may follow: those of
   * a command, or of other processes of the run.
   */
  resume(): void {
    this.ledger.resume();
    this.#planning.resume();
  }

  /** A retraction for each answer that a crash cut off. */
  discards(): readonly JsonObject[] {
    return this.#cutOff.discards(this.#seq);
  }

  /** The history of an attempt that was cut off. `seed`: the messages that its worker began with. */
  attempt({ task, attempt }: Whose, seed: readonly Message[]): Past | undefined {
    return foldSessionHistory(
      (this.#attempts.get(`${task} ${attempt}`) ?? []) as unknown as readonly JsonObject[],
      seed,
    );
  }

  #takeAttempt(record: Recorded): void {
    const { task, attempt } = record;
    if (task === undefined || attempt === undefined) return;
    const key = `${task} ${attempt}`;
    const own = this.#attempts.get(key) ?? [];
    own.push(record);
    this.#attempts.set(key, own);
    if (record.type === 'task_end' && record.status !== 'cancelled') this.#attempts.delete(key);
  }

  #forgetFailedGates(): void {
    for (const [key, { passed }] of this.gates) if (!passed) this.gates.delete(key);
  }
}

type RunStart = Extract<Recorded, { readonly type: 'run_start' }>;

/** The history of a run that may not have begun. */
export function foldRunHistory(records: readonly JsonObject[]): RunHistory {
  const history = new RunHistory();
  history.takeAll(records);
  history.resume();
  return history;
}

/** The same; undefined for a run that has not begun. */
export function readRunHistory(records: readonly JsonObject[]): RunHistory | undefined {
  const history = foldRunHistory(records);
  return history.isBegun ? history : undefined;
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
      last.output === endCallNotRun(this.#ended);
    if (isUnanswered) this.records = runHistoryWithOpenCall(this.records, last.callId);
    this.#ended = undefined;
    if (this.#ledger.openTasks().length > 0) this.records = runHistoryWithOpenCall(this.records, this.#callId);
  }
}

/** The coordinator's records up to the call's end. Later answers are dropped; their usage still counts. */
function runHistoryWithOpenCall(records: Recorded[], callId: string | undefined): Recorded[] {
  const end = records.findIndex((record) => record.type === 'tool_execution_end' && record.callId === callId);
  if (callId === undefined || end < 0) return records;
  return [...records.slice(0, end), ...records.slice(end).filter(({ type }) => type === 'usage')];
}

type Whose = { readonly task: string; readonly attempt: number };

const NO_SETTINGS = new Set(['v', 'seq', 'at', 'run', 'type', 'resumed']);

/** The settings of the run. They also hold after a resume. */
function settingsInRunHistory(start: object): RunSettings {
  return Object.fromEntries(Object.entries(start).filter(([key]) => !NO_SETTINGS.has(key))) as unknown as RunSettings;
}

/** The history of one worker, from all records of its run. */
export function readAgentHistoryOfRun(
  records: readonly Recorded[],
  whose: Whose,
  seed: readonly Message[],
): Past | undefined {
  const own = records.filter(({ task, attempt }) => task === whose.task && attempt === whose.attempt);
  return foldSessionHistory(own as unknown as readonly JsonObject[], seed);
}

/** The warning about requests that were under way at a crash. */
export function lostRunWords(lost: number): string | undefined {
  if (lost === 0) return undefined;
  const [requests, they] = lost === 1 ? ['a request was', 'it'] : [`${lost} requests were`, 'they'];
  return `${requests} under way when the run was interrupted, and what ${they} cost is unknown: the most that ${they} can have cost counts as spent`;
}
