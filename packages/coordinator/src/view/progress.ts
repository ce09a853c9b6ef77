// Progress of one task, as a fold over its events. RunState alone makes it.

import type { Recorded } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import type { Usage } from '@drover/protocol/messages';
import type { TaskMessage } from '@drover/core/task/link';
import type { TaskRow, TaskStatus } from '@drover/protocol/run';
import type { PlannedTask, SeedSummary } from '@drover/protocol/plan';
import { type Activity, AgentProgress, type Progress } from './agent-progress.ts';

export type TaskState = Activity | 'merging' | 'gate' | TaskStatus;

export type TaskProgress = Omit<Progress, 'activity'> & {
  readonly id: string;
  readonly plan: PlannedTask;
  readonly round: number; // of the last plan that named it
  readonly state: TaskState;
  readonly isReady: boolean; // every dependency has landed
  /** An attempt began and has no end: it is running, or a crash cut it off. */
  readonly isOpen: boolean;
  readonly attempts: number; // attempts begun; the last one is the current one
  readonly attempt: AttemptStart | undefined;
  readonly worker: number | undefined;
  readonly files: readonly string[];
  readonly commit: string | undefined; // the landed commit, else the worker's own
  readonly branch: string | undefined;
  readonly summary: string | undefined;
  readonly failure: Failure | undefined;
  readonly reason: string | undefined;
  readonly startedMs: number | undefined; // on the run's clock
  readonly endedMs: number | undefined;
  /** Messages of the user that the worker does not have yet. */
  readonly messages: readonly TaskMessage[];
  /** Time since the start without the time that it waited for the user. `clock` is the run's, `now` the wall clock. */
  readonly workedMs: (clock: number, now: number) => number;
};

/** Inputs of the last attempt. */
export type AttemptStart = {
  readonly base: string;
  readonly workspace: string;
  readonly seed: SeedSummary;
  readonly host?: string; // absent: on the coordinator's machine
};

export type Of<Type extends Recorded['type']> = Extract<Recorded, { readonly type: Type }>;
type Phase = 'waiting' | 'retrying' | 'merging' | 'gate' | TaskStatus;

export class Task implements TaskProgress {
  readonly id: string;
  readonly progress = new AgentProgress();
  plan: PlannedTask;
  round: number;
  isReady = false;
  isOpen = false;
  attempts = 0;
  attempt: AttemptStart | undefined;
  worker: number | undefined;
  files: readonly string[] = [];
  commit: string | undefined;
  branch: string | undefined;
  summary: string | undefined;
  failure: Failure | undefined;
  reason: string | undefined;
  startedMs: number | undefined;
  endedMs: number | undefined;
  attemptMs = 0; // when the last one began
  messages: readonly TaskMessage[] = [];
  #askedBefore = 0; // the last attempt
  #phase: Phase = 'waiting';
  #command = ''; // of the gate

  constructor(plan: PlannedTask, round: number) {
    this.id = plan.id;
    this.plan = plan;
    this.round = round;
  }

  get state(): TaskState {
    return this.isUnderWay ? this.progress.activity : this.#phase;
  }

  get isUnderWay(): boolean {
    return this.isOpen && !this.isOver;
  }

  get isOver(): boolean {
    return isProgressEnded(this.#phase);
  }

  get isMerging(): boolean {
    return this.#phase === 'merging' || this.#phase === 'gate';
  }

  get doing(): string {
    if (this.isUnderWay) return this.progress.doing;
    if (this.#phase === 'retrying') return this.reason ?? '';
    return this.#phase === 'gate' ? this.#command : '';
  }

  get usage(): Usage {
    return this.progress.usage;
  }

  get waitMs(): number {
    return this.progress.waitMs;
  }

  get lastLine(): string {
    return this.progress.lastLine;
  }

  get outputChars(): number {
    return this.progress.outputChars;
  }

  get cost(): number | undefined {
    return this.progress.cost;
  }

  workedMs(clock: number, now: number): number {
    if (this.startedMs === undefined) return 0;
    return Math.max(0, (this.endedMs ?? clock) - this.startedMs - this.progress.askedMs(now));
  }

  /** The same for the last attempt. */
  attemptWorkedMs(clock: number, now: number): number {
    return Math.max(0, clock - this.attemptMs - (this.progress.askedMs(now) - this.#askedBefore));
  }

  /** A message of the user waits, or has been delivered. */
  takeMessage(event: Of<'task_message' | 'task_message_delivered'>): void {
    const others = this.messages.filter(({ id }) => id !== event.id);
    this.messages = event.type === 'task_message' ? [...others, { id: event.id, text: event.text }] : others;
  }

  planAgain(plan: PlannedTask, round: number): void {
    this.plan = plan;
    this.round = round;
    this.isReady = false;
    this.isOpen = false;
    this.#return('waiting');
  }

  /** Called when an attempt is about to begin, whatever the result of the last one. */
  ready(): void {
    this.isReady = true;
    if (this.isOver) this.#return('waiting');
  }

  /** Called when a stopped run is resumed. */
  wake(): void {
    if (this.#phase === 'cancelled' && this.failure?.kind !== 'task.cancelled') this.#return('waiting');
    // The task changed nothing while a gate of the run was red; the end of the run tests the gates again.
    if (this.#phase === 'gate_failed' && this.commit === undefined) this.#phase = 'done';
    if (this.isOpen) this.progress.rest();
  }

  start({ base, workspace, seed, host, attempt, worker }: Of<'task_start'>, clock: number): void {
    this.#return('waiting');
    // The same attempt may begin again after a crash: its usage so far still counts.
    const isNew = !this.isOpen || attempt !== this.attempts;
    if (isNew) this.progress.begin();
    if (isNew) this.attemptMs = clock;
    if (isNew) this.#askedBefore = this.progress.askedMs(0);
    this.isReady = true;
    this.isOpen = true;
    this.attempts = attempt ?? this.attempts + 1;
    this.attempt = { base, workspace, seed, ...(host !== undefined && { host }) };
    if (worker !== undefined) this.worker = worker;
    this.startedMs ??= clock;
  }

  /** The attempt moved to a host, or to another one. */
  placed(event: Of<'placement'>): void {
    if (event.state !== 'accepted' || this.attempt === undefined) return;
    this.attempt = { ...this.attempt, workspace: event.workspace, host: event.host.name };
  }

  endAttempt(event: Of<'task_end'>, clock: number): void {
    const { status, again, failure, summary, files, commit, branch, usage, cost } = event;
    if (status !== 'skipped') {
      this.progress.spend({ total: usage, ...(cost !== undefined && { cost }) });
      this.files = files;
      this.commit = commit;
      this.branch = branch;
      this.summary = summary;
    }
    if (status !== 'cancelled' || again || failure?.kind === 'task.cancelled') this.isOpen = false;
    if (status === 'finished') this.messages = [];
    this.progress.rest();
    const reason = event.reason ?? (failure && describe(failure));
    if (again) return this.#return('retrying', { failure, reason });
    if (status !== 'finished') return this.#finish(status, clock, { failure, reason });
    if (commit === undefined) this.#finish('done', clock);
    else this.#return('merging');
  }

  /** Applies an event of the merge train. */
  settle(phase: 'merging' | 'gate', command = ''): void {
    if (this.isOver) return;
    this.#phase = phase;
    this.#command = command;
  }

  endMerge({ outcome, again, commit, conflicts, reason }: Of<'merge_end'>, clock: number): void {
    const why = reason ?? (conflicts && `it conflicts in ${conflicts.join(', ')}`);
    if (outcome === 'landed') {
      if (commit !== undefined) this.commit = commit;
      return this.#finish('landed', clock);
    }
    if (again) this.#return('retrying', { failure: undefined, reason: why });
    else this.#finish(outcome, clock, { failure: undefined, reason: why });
  }

  /** The final result of the task in `run_end`. */
  become({ status, files, commit, branch, summary, failure, reason }: TaskRow, clock: number): void {
    this.files = files;
    this.commit = commit;
    this.branch = branch;
    this.summary = summary;
    this.#finish(status, this.endedMs ?? clock, { failure, reason });
  }

  #return(phase: Phase, why: Why = NO_REASON): void {
    this.#phase = phase;
    this.endedMs = undefined;
    this.failure = why.failure;
    this.reason = why.reason;
  }

  #finish(status: TaskStatus, clock: number, why: Why = NO_REASON): void {
    this.#return(status, why);
    this.endedMs = clock;
  }
}

type Why = { readonly failure: Failure | undefined; readonly reason: string | undefined };

const NO_REASON: Why = { failure: undefined, reason: undefined };

const OVER: ReadonlySet<TaskState> = new Set<TaskStatus>([
  'landed',
  'done',
  'failed',
  'skipped',
  'conflict',
  'gate_failed',
  'cancelled',
]);

export function isProgressEnded(state: TaskState): state is TaskStatus {
  return OVER.has(state);
}
