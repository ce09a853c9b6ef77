// Progress of one agent and of one task, as folds over their events.
//
// RunState alone makes them: an AgentProgress for the coordinator, a Task for each task.
// Deltas arrive by the thousand, so a delta costs only the line that it ends.

import { fallbackWords, type Recorded, type SessionEvent } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import type { Usage } from '@drover/protocol/messages';
import type { Told } from '@drover/core/journal/dollars';
import type { TaskRow, TaskStatus } from '@drover/protocol/run';
import type { PlannedTask, SeedSummary } from '@drover/protocol/plan';
import { AgentSpending } from './spending.ts';

const LINE_CHARS_MAX = 500;

export type Activity = 'waiting' | 'starting' | 'thinking' | 'running' | 'asking' | 'throttled' | 'retrying';

export type Progress = {
  readonly activity: Activity;
  /** The summary of the running tool, else the reason for waiting, else empty. */
  readonly doing: string;
  readonly usage: Usage;
  readonly cost: number | undefined; // US dollars; absent where the price is unknown
  readonly waitMs: number; // spent waiting for the throttle
  /** The last line of text or tool output. It is raw: clean it before showing it on a terminal. */
  readonly lastLine: string;
  readonly outputChars: number; // characters of text and tool output so far
};

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
};

/** Inputs of the last attempt. */
export type AttemptStart = {
  readonly base: string;
  readonly workspace: string;
  readonly seed: SeedSummary;
  readonly host?: string; // absent: on the coordinator's machine
};

export type Of<Type extends Recorded['type']> = Extract<Recorded, { readonly type: Type }>;
type AgentEvent = Extract<Recorded, SessionEvent | { readonly type: 'throttle_wait' | 'attempt_moved' }>;

export class AgentProgress implements Progress {
  activity: Activity = 'waiting';
  doing = '';
  waitMs = 0;
  lastLine = '';
  outputChars = 0;
  #openLine = ''; // text after the last newline
  readonly #calls = new Map<string, string>(); // callId -> summary of running calls
  readonly #questions = new Map<string, string>(); // requestId -> summary
  readonly #spending = new AgentSpending();

  get usage(): Usage {
    return this.#spending.usage;
  }

  get cost(): number | undefined {
    return this.#spending.cost;
  }

  /** Starts a new conversation. Earlier spending is kept. */
  begin(): void {
    this.#settle();
    this.#spending.begin();
    this.#be('starting', '');
  }

  /** Marks the agent as idle: it ended, or drover was stopped. */
  rest(): void {
    this.#settle();
    this.#be('waiting', '');
  }

  /** Sets the total of the conversation. It never lowers what events reported so far. */
  spend(spent: Told): void {
    this.#spending.atLeast(spent);
  }

  take(event: AgentEvent): void {
    switch (event.type) {
      case 'session_start':
        this.#spending.use(event.model);
        return this.#be('starting', '');
      case 'text_delta':
        this.#hear(event.delta);
        return this.#think();
      case 'tool_execution_delta':
        return this.#hear(event.delta);
      case 'message_start':
      case 'message_end':
      case 'thinking_start':
      case 'thinking_delta':
      case 'thinking_end':
      case 'text_start':
      case 'toolcall_start':
      case 'toolcall_delta':
      case 'toolcall_end':
        return this.#think();
      case 'text_end':
        this.#endLine();
        return this.#think();
      case 'tool_execution_start':
        this.#calls.set(event.callId, event.summary);
        return this.#work();
      case 'tool_execution_end':
        this.#calls.delete(event.callId);
        this.#endLine();
        return this.#work();
      case 'permission_request':
        this.#questions.set(event.requestId, event.summary);
        return this.#work();
      case 'permission_decision':
        this.#questions.delete(event.requestId);
        return this.#work();
      case 'awaiting_tool_execution':
        return this.#be('running', event.calls.map(({ summary }) => summary).join(', '));
      case 'usage':
        return this.#spending.take(event);
      case 'throttle_wait':
        this.waitMs += event.waitMs;
        return this.#be('throttled', event.reason);
      case 'retry':
      case 'attempt_discarded':
        return this.#be('retrying', event.reason);
      case 'model_fallback':
        return this.#be('retrying', fallbackWords(event));
      case 'attempt_moved':
        return this.#be('starting', 'resumes in another thread');
      case 'compaction_start':
        return this.#be('thinking', 'shortens its conversation');
      case 'compaction_end':
        return this.#be('thinking', '');
      case 'session_end':
        return this.#settle();
      default: // the other events don't change what the agent does
        return;
    }
  }

  // Running calls and open questions are shown rather than a streaming answer.
  #think(): void {
    if (this.#calls.size === 0 && this.#questions.size === 0) this.#be('thinking', '');
  }

  #work(): void {
    const asked = lastOf(this.#questions);
    if (asked !== undefined) return this.#be('asking', asked);
    const called = lastOf(this.#calls);
    if (called === undefined) return this.#be('thinking', '');
    this.#be('running', this.#calls.size > 1 ? `${called} and ${this.#calls.size - 1} more` : called);
  }

  #be(activity: Activity, doing: string): void {
    this.activity = activity;
    this.doing = doing;
  }

  #settle(): void {
    this.#calls.clear();
    this.#questions.clear();
    this.#endLine();
  }

  #hear(delta: string): void {
    this.outputChars += delta.length;
    const end = Math.max(delta.lastIndexOf('\n'), delta.lastIndexOf('\r'));
    if (end === -1) {
      if (this.#openLine.length < LINE_CHARS_MAX) this.#openLine += delta;
    } else {
      const whole = (this.#openLine + delta.slice(0, end)).split(/[\r\n]/).findLast(isSaying);
      if (whole !== undefined) this.lastLine = whole.slice(0, LINE_CHARS_MAX);
      this.#openLine = delta.slice(end + 1);
    }
    if (isSaying(this.#openLine)) this.lastLine = this.#openLine.slice(0, LINE_CHARS_MAX);
  }

  #endLine(): void {
    this.#openLine = '';
  }
}

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
    return isStatus(this.#phase);
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
    if (this.#phase === 'cancelled') this.#return('waiting');
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
    if (status !== 'cancelled' || again) this.isOpen = false;
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

export function isStatus(state: TaskState): state is TaskStatus {
  return OVER.has(state);
}

function lastOf(summaries: ReadonlyMap<string, string>): string | undefined {
  return [...summaries.values()].at(-1);
}

function isSaying(line: string): boolean {
  return /\S/.test(line);
}
