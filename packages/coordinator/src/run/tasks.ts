// The task ledger of a run: one state machine per task, fed with the run's events.
//
//   waiting → ready → attempting(n) → landing → over(status)
//
// Guarantees
//   1. Plans are executed by the ledger alone: attempts, failures, conflicts, base commits and statuses of tasks.
//      The canary, delivery and `run_end` still read RunState, a fold over the same events.
//   2. `take` builds it from the journal and updates it while the run works: the same events give the same ledger.
//   3. An attempt that failed before its `task_start`, for want of a workspace, uses up its number. A cancelled attempt
//      keeps its number and resumes under it.
//   4. A later plan that names a task which is over, and not done, starts it anew; only its attempts keep counting.
//   5. A task that the user cancelled stays so when the run is resumed.
//   6. A task that the user reopens starts anew, and from everything that had landed by then.
//
// Crash: the ledger holds nothing that the journal lacks. On resume, a cancelled task returns to its last step.
// Tasks that failed for a reason outside the task (budget, provider, lost worker) wait again, and so do tasks that
// were skipped because of them. Permanent failures stay, with their dependents.

import type { TaskMessage } from '@drover/core/task/link';
import type { Event, Place } from '@drover/protocol/events';
import { describe, type Failure, FAILURES, traitsOfFailure } from '@drover/protocol/failures';
import type { PlannedTask } from '@drover/protocol/plan';
import { isDone, type TaskStatus } from '@drover/protocol/run';

export type TaskStep =
  | { readonly at: 'waiting' }
  | { readonly at: 'ready' }
  | { readonly at: 'attempting'; readonly attempt: number; readonly base: string }
  | { readonly at: 'landing'; readonly commit: string; readonly summary: string }
  /** `from` is the step that the task was at when it ended. */
  | { readonly at: 'over'; readonly status: TaskStatus; readonly from: TaskStep };

export type TaskEntry = {
  readonly step: TaskStep;
  readonly attempts: number; // the last attempt number in use
  readonly started: number; // the last attempt with a `task_start`
  readonly failures: number; // attempts that failed and were followed by another
  readonly conflicts: number;
  readonly failure?: Failure; // of the last attempt
  readonly reason?: string; // why the merge train left its work out
  readonly retry?: Retry;
  /** The head that the task conflicted with: the base of its next attempts. */
  readonly onto?: string;
  /** The number of tasks that had landed when the user reopened it: its attempts build on them. */
  readonly landedBefore?: number;
  /** An attempt that was cancelled before a new plan: its workspace holds uncommitted work. */
  readonly interrupted?: number;
  /** Messages of the user that no worker has yet. */
  readonly messages?: readonly TaskMessage[];
  /** Messages of the user that a worker of this task has had, for later attempts. */
  readonly told?: readonly string[];
};

/** Why there is another attempt; after a conflict, between which commits. */
export type Retry = {
  readonly reason: string;
  readonly conflict?: { readonly onto: string; readonly commit: string };
};

export const NEW_TASK: TaskEntry = { step: { at: 'waiting' }, attempts: 0, started: 0, failures: 0, conflicts: 0 };

type TaskEvent<Type extends Event['type']> = Extract<Event, { readonly type: Type }>;

export class TaskLedger {
  readonly #tasks = new Map<string, TaskEntry>();
  readonly #landed = new Map<string, string>();
  #sentBack: readonly string[] = [];
  #plan: readonly PlannedTask[] = [];
  #rounds = 0;
  #head: string | undefined;

  /** The number of plans so far. */
  get rounds(): number {
    return this.#rounds;
  }

  /** The integration head with a task's work, by task, in the order of landing. */
  get landed(): ReadonlyMap<string, string> {
    return this.#landed;
  }

  /** Whether a worker has started. */
  get isBegun(): boolean {
    return this.#tasks.values().some(({ started }) => started > 0);
  }

  /** The commit that holds everything landed; undefined if nothing has. */
  get head(): string | undefined {
    return this.#head;
  }

  /** The tasks that a conflict sent to the end of the order, once for each time. */
  get sentBack(): readonly string[] {
    return this.#sentBack;
  }

  /** The last plan, with the tasks that were reopened since. */
  get plan(): readonly PlannedTask[] {
    return this.#plan;
  }

  get tasks(): ReadonlyMap<string, TaskEntry> {
    return this.#tasks;
  }

  task(id: string): TaskEntry {
    return this.#tasks.get(id) ?? NEW_TASK;
  }

  status(id: string): TaskStatus | undefined {
    return statusOfTaskEntry(this.task(id));
  }

  /** The tasks that are over. */
  statuses(): ReadonlyMap<string, TaskStatus> {
    return new Map([...this.#tasks].flatMap(([id, { step }]) => (step.at === 'over' ? [[id, step.status]] : [])));
  }

  /** The tasks of the last plan that are not over. */
  openTasks(): readonly string[] {
    return this.#plan.flatMap(({ id }) => (this.status(id) === undefined ? [id] : []));
  }

  take(event: Event, { task: id, attempt }: Place): void {
    if (event.type === 'run_start' && event.resumed) this.resume();
    if (event.type === 'plan_ready') this.#takePlan(event);
    if (event.type === 'tasks_reopened') this.#reopen(event);
    if (id === undefined) return;
    const task = this.task(id);
    switch (event.type) {
      case 'task_ready':
        if (task.step.at === 'waiting') this.#move(id, { at: 'ready' });
        return;
      case 'task_message':
        return this.#set(id, { messages: [...(task.messages ?? []), { id: event.id, text: event.text }] });
      case 'task_message_delivered':
        return this.#deliver(id, event.id);
      case 'task_start':
        return this.#start(id, event, attempt ?? task.attempts);
      case 'task_end':
        return this.#endAttempt(id, event, attempt ?? task.attempts);
      case 'merge_end':
        return this.#endMerge(id, event);
      default:
        return;
    }
  }

  /** The run continues after an end or a crash. Idempotent. */
  resume(): void {
    for (const [id, { step, failure }] of this.#tasks)
      if (step.at === 'over' && step.status === 'cancelled' && failure?.kind !== 'task.cancelled')
        this.#move(id, step.from);
    const standing = new Map([...this.#tasks].map(([id, task]) => [id, standingOfTaskEntry(task)]));
    for (const id of tasksToReopen(this.#plan, standing)) {
      const { step } = this.task(id);
      const isFinished = step.at === 'over' && step.from.at === 'landing';
      // The failure stays: it says whether the workspace holds the only copy of the work.
      this.#tasks.set(id, { ...this.task(id), step: isFinished ? step.from : { at: 'waiting' }, failures: 0 });
    }
  }

  #move(id: string, step: TaskStep): void {
    this.#set(id, { step });
  }

  #set(id: string, change: Partial<TaskEntry>): void {
    this.#tasks.set(id, { ...this.task(id), ...change });
  }

  #deliver(id: string, message: string): void {
    const { messages = [], told = [] } = this.task(id);
    const text = messages.find((each) => each.id === message)?.text;
    if (text !== undefined)
      this.#set(id, { messages: messages.filter((each) => each.id !== message), told: [...told, text] });
  }

  #finish(id: string, status: TaskStatus): void {
    const { step } = this.task(id);
    this.#move(id, { at: 'over', status, from: step.at === 'over' ? step.from : step });
  }

  #takePlan({ tasks }: TaskEvent<'plan_ready'>): void {
    this.#rounds += 1;
    this.#plan = tasks;
    for (const { id } of tasks) {
      const { step, attempts, started } = this.task(id);
      if (step.at !== 'over' || isDone(step.status)) continue;
      const isCut = step.status === 'cancelled' && step.from.at === 'attempting';
      this.#tasks.set(id, { ...NEW_TASK, attempts, started, ...(isCut && { interrupted: started }) });
      this.#sentBack = this.#sentBack.filter((each) => each !== id);
    }
  }

  #reopen({ tasks }: TaskEvent<'tasks_reopened'>): void {
    const ids = new Set(tasks.map(({ id }) => id));
    this.#plan = [...this.#plan.filter(({ id }) => !ids.has(id)), ...tasks];
    this.#sentBack = this.#sentBack.filter((id) => !ids.has(id));
    for (const id of ids) {
      if (this.#landed.has(id)) continue;
      const { attempts, started, failure, reason, messages, told, ...before } = this.task(id);
      const isCut =
        failure?.kind === 'task.cancelled' && before.step.at === 'over' && before.step.from.at === 'attempting';
      const interrupted = isCut ? started : before.interrupted;
      const why = failure === undefined ? reason : describe(failure);
      const words = `The user asked for another try. The one before ${why === undefined ? 'did not land' : `failed: ${why}`}. Its changes are gone: begin again.`;
      this.#tasks.set(id, {
        ...NEW_TASK,
        attempts,
        started,
        landedBefore: this.#landed.size,
        // The failure stays: it says whether the workspace holds the only copy of the work.
        ...(failure !== undefined && { failure }),
        ...(interrupted !== undefined && { interrupted }),
        ...(started > 0 && { retry: { reason: words } }),
        ...(messages !== undefined && { messages }),
        ...(told !== undefined && { told }),
      });
    }
  }

  #start(id: string, { base }: TaskEvent<'task_start'>, attempt: number): void {
    const { failure: _, interrupted: __, ...task } = this.task(id);
    this.#tasks.set(id, { ...task, attempts: attempt, started: attempt, step: { at: 'attempting', attempt, base } });
  }

  #endAttempt(id: string, end: TaskEvent<'task_end'>, attempt: number): void {
    const { status, again, failure, commit, summary = '' } = end;
    // It resumes where it was, under the same number.
    if (status === 'cancelled') {
      if (failure?.kind === 'task.cancelled') this.#set(id, { failure });
      return this.#finish(id, status);
    }
    const task = this.task(id);
    const attempts = Math.max(task.attempts, attempt);
    this.#tasks.set(id, { ...task, attempts, ...(failure !== undefined && { failure }) });
    if (again) return this.#retry(id, end);
    if (status !== 'finished') return this.#finish(id, status);
    if (commit === undefined) return this.#finish(id, 'done');
    this.#move(id, { at: 'landing', commit, summary });
  }

  #retry(id: string, { failure, reason }: TaskEvent<'task_end'>): void {
    const task = this.task(id);
    const why = failure === undefined ? (reason ?? 'for an unknown reason') : describe(failure);
    const retry = { reason: `The one before failed: ${why}. Its changes are gone: begin again.` };
    this.#tasks.set(id, { ...task, step: { at: 'ready' }, failures: task.failures + 1, retry });
  }

  #endMerge(id: string, { outcome, again, commit, onto, reason = '' }: TaskEvent<'merge_end'>): void {
    if (outcome === 'landed') {
      this.#head = commit ?? this.#head;
      if (this.#head !== undefined) this.#landed.set(id, this.#head);
    }
    if (!again) {
      if (reason !== '') this.#tasks.set(id, { ...this.task(id), reason });
      return this.#finish(id, outcome);
    }
    const task = this.task(id);
    const made = task.step.at === 'landing' ? task.step.commit : undefined;
    const conflict = onto !== undefined && made !== undefined ? { onto, commit: made } : undefined;
    this.#sentBack = [...this.#sentBack, id];
    this.#tasks.set(id, {
      ...task,
      step: { at: 'ready' },
      conflicts: task.conflicts + 1,
      retry: { reason, ...(conflict && { conflict }) },
      ...(conflict && { onto: conflict.onto }),
    });
  }
}

function statusOfTaskEntry({ step }: TaskEntry): TaskStatus | undefined {
  return step.at === 'over' ? step.status : undefined;
}

function standingOfTaskEntry(task: TaskEntry): TaskStanding {
  return { status: statusOfTaskEntry(task), failure: task.failure };
}

const KEPT: ReadonlySet<TaskStatus> = new Set(['landed', 'done', 'conflict', 'gate_failed']);

/** Whether an attempt's work is on a branch or was nothing, so that its workspace can be reused. */
export function isAttemptKeptInLedger({ started, step, failure, interrupted }: TaskEntry, attempt: number): boolean {
  // It had its workspace, and waited for its turn.
  if (attempt > started) return true;
  if (attempt === interrupted || step.at === 'attempting') return false;
  // A failed attempt is committed, too, unless the commit is what failed.
  if (step.at !== 'over' || step.status === 'failed')
    return failure === undefined || !FAILURES[failure.kind].keepsWorkspace;
  return step.from.at === 'landing' || KEPT.has(step.status);
}

export type TaskStanding = { readonly status: TaskStatus | undefined; readonly failure: Failure | undefined };

/** The tasks of a plan that a resumed run starts again, though they are over. */
export function tasksToReopen(
  planned: readonly PlannedTask[],
  tasks: ReadonlyMap<string, TaskStanding>,
): ReadonlySet<string> {
  const reopened = new Set<string>();
  const statusNow = (id: string) => (reopened.has(id) ? undefined : tasks.get(id)?.status);
  for (const { id } of planned)
    if (statusNow(id) === 'failed' && isPassingTaskFailure(tasks.get(id)?.failure)) reopened.add(id);
  const isHopeless = ({ dependsOn }: PlannedTask) =>
    dependsOn.some((id) => statusNow(id) !== undefined && !isDone(statusNow(id)));
  // A skipped task waits again unless a dependency failed for good; and so on down the plan.
  for (let before = -1; before !== reopened.size;) {
    before = reopened.size;
    for (const task of planned) if (statusNow(task.id) === 'skipped' && !isHopeless(task)) reopened.add(task.id);
  }
  return reopened;
}

/** Whether a later try, a larger budget or another key may help: the task is not to blame. */
export function isPassingTaskFailure(failure: Failure | undefined): boolean {
  return failure !== undefined && traitsOfFailure(failure).resume;
}
