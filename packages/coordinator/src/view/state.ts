// Run state: a fold over the events of a run, fed by the live bus or by the journal.
//
// Views show it, `run_end` lists it, and a resumed run reads from it which tasks are left.
//   1. It holds only what events say.
//   2. Times are milliseconds on the run's own clock, which stops between a crash and the resume.
//   3. A later plan may name a failed task again. The task waits anew; its attempts, tokens and waits are kept.
//   4. Events of an attempt that has ended change nothing.

import { type DeniedCall, DeniedCalls } from '@drover/core/permission/denied-calls';
import type { Fallback, Place, Recorded } from '@drover/protocol/events';
import type { Cap } from '@drover/protocol/limits';
import type { Usage } from '@drover/protocol/messages';
import type { PlannedTask } from '@drover/protocol/plan';
import { sumUsage } from '@drover/core/model/spending/usage';
import { type RunSettings, type TaskRow, isDone } from '@drover/protocol/run';
import { SpendingFold } from './spending.ts';
import { WorkedTime } from './worked-time.ts';
import { AgentProgress, type Progress } from './agent-progress.ts';
import { isProgressEnded, type Of, Task, type TaskProgress } from './progress.ts';

export type { Progress } from './agent-progress.ts';
export type { TaskProgress, TaskState } from './progress.ts';
export type Landed = { readonly task: string; readonly commit: string };
export type PlanRound = {
  readonly round: number;
  readonly by: Of<'plan_ready'>['by'];
  readonly tasks: readonly string[];
};
export type GateRecord = Pick<
  Of<'gate_end'>,
  'command' | 'tree' | 'tasks' | 'passed' | 'flaky' | 'output' | 'durationMs'
>;
export type RecordedRunEnd = Of<'run_end'>;

export class RunState {
  readonly #plans: PlanRound[] = [];
  readonly #tasks = new Map<string, Task>();
  readonly #landed: Landed[] = [];
  readonly #gates = new Map<string, GateRecord>();
  readonly #coordinator = new AgentProgress();
  readonly #durations = { sumMs: 0, count: 0 }; // of finished attempts
  #id = '';
  #settings: RunSettings | undefined;
  readonly #blockedHosts = new Map<string, number>();
  readonly #denied = new DeniedCalls();
  readonly #fallbacks: (Fallback & Place)[] = [];
  #end: RecordedRunEnd | undefined;
  #proposed: readonly PlannedTask[] | undefined;
  #isPaused = false;
  #budget = { spent: 0, reserved: 0 };
  readonly #spending = new SpendingFold(); // of all agents, as the budget counts it
  #cap: Cap | undefined;
  #isBegun = false;
  readonly #time = new WorkedTime();

  get id(): string {
    return this.#id;
  }

  /** host:port -> number of connections that the sandbox refused. */
  get blockedHosts(): ReadonlyMap<string, number> {
    return this.#blockedHosts;
  }

  /** Denied calls of the coordinator and the workers. */
  get denied(): readonly DeniedCall[] {
    return this.#denied.list;
  }

  /** Moves of agents to other models, in order. */
  get fallbacks(): readonly (Fallback & Place)[] {
    return this.#fallbacks;
  }

  get settings(): RunSettings | undefined {
    return this.#settings;
  }

  /** The last `run_end`; undefined while the run works or after it was resumed. */
  get end(): RecordedRunEnd | undefined {
    return this.#end;
  }

  /** A plan that waits for the user's approval. */
  get proposed(): readonly PlannedTask[] | undefined {
    return this.#proposed;
  }

  /** The user holds back attempts that have not started. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** In the order of the plans. */
  get tasks(): ReadonlyMap<string, TaskProgress> {
    return this.#tasks;
  }

  get coordinator(): Progress {
    return this.#coordinator;
  }

  get plans(): readonly PlanRound[] {
    return this.#plans;
  }

  /** In the order in which they landed. */
  get landed(): readonly Landed[] {
    return this.#landed;
  }

  /** The commit with every landed task; the base if there is none. */
  get head(): string | undefined {
    return this.#landed.at(-1)?.commit ?? this.#settings?.base;
  }

  /** In the unit of the cap: dollars, else tokens. */
  get spent(): number {
    return this.#budget.spent;
  }

  get reserved(): number {
    return this.#budget.reserved;
  }

  get cap(): Cap | undefined {
    return this.#cap ?? this.#settings?.cap;
  }

  get usage(): Usage {
    return (
      this.#spending.told?.usage ??
      this.#end?.usage ??
      [...this.#tasks.values()].reduce((sum, { usage }) => sumUsage(sum, usage), this.#coordinator.usage)
    );
  }

  get cost(): number | undefined {
    const { told } = this.#spending;
    if (told !== undefined) return told.cost;
    if (this.#end !== undefined) return this.#end.cost;
    const costs = [this.#coordinator, ...this.#tasks.values()].flatMap(({ cost }) => cost ?? []);
    return costs.length === 0 ? undefined : costs.reduce((sum, cost) => sum + cost);
  }

  gateResult(tree: string, command: string): GateRecord | undefined {
    return this.#gates.get(gateKeyInView(tree, command));
  }

  /** The last gate that failed with this task's work in the tree. */
  failedGate(task: string): GateRecord | undefined {
    return [...this.#gates.values()].findLast(({ tasks, passed }) => !passed && tasks.includes(task));
  }

  /** The cost of the requests of all agents. */
  get spending(): Pick<SpendingFold, 'spent' | 'lostRequests'> {
    return this.#spending;
  }

  /** Milliseconds that the run has worked, up to its last event. */
  get workedMs(): number {
    return this.#time.ms;
  }

  /** Returns the time that the run has worked. `now` is wall-clock time. */
  elapsedMs(now: number): number {
    return this.#time.until(now);
  }

  /** Estimates the remaining time from finished attempts; undefined while there is none. */
  etaMs(now: number): number | undefined {
    if (this.#durations.count === 0 || this.#end !== undefined) return undefined;
    const usualMs = this.#durations.sumMs / this.#durations.count;
    const clock = this.elapsedMs(now);
    const left = new Map<string, number>();
    for (const [id, task] of this.#tasks) {
      const workedMs = task.isOpen ? task.attemptWorkedMs(clock, now) : 0;
      // A task that takes longer than usual still needs at least a quarter of the usual time.
      if (!task.isOver && !task.isMerging) left.set(id, Math.max(usualMs - workedMs, usualMs / 4));
    }
    const sumMs = left.values().reduce((sum, each) => sum + each, 0);
    return Math.max(sumMs / Math.max(1, this.#settings?.workers ?? 1), longestChainMsOfState(this.#tasks, left));
  }

  take(event: Recorded): void {
    this.#spending.take(event);
    this.#denied.take(event);
    if (event.type === 'model_fallback') this.#fallbacks.push(event);
    this.#time.take(event);
    if (event.type === 'run_start') this.#begin(event);
    switch (event.type) {
      case 'run_start':
        return;
      case 'plan_proposed':
        return this.#propose(event.tasks);
      case 'plan_comment':
        return this.#propose(undefined);
      case 'plan_ready':
        return this.#plan(event);
      case 'tasks_reopened':
        return this.#reopen(event);
      case 'run_pause':
        return this.#pause(event);
      case 'task_message':
      case 'task_message_delivered':
        return this.#task(event)?.takeMessage(event);
      case 'task_ready':
        return this.#task(event)?.ready();
      case 'task_start':
        return this.#task(event)?.start(event, this.#time.ms);
      case 'placement':
        return this.#task(event)?.placed(event);
      case 'task_end':
        return this.#endAttempt(event);
      case 'merge_start':
        return this.#task(event)?.settle('merging');
      case 'merge_end':
        return this.#endMerge(event);
      case 'gate_start':
        for (const id of event.tasks) this.#tasks.get(id)?.settle('gate', event.command);
        return;
      case 'gate_end':
        for (const id of event.tasks) this.#tasks.get(id)?.settle('merging');
        this.#gates.delete(gateKeyInView(event.tree, event.command)); // the newest result is last
        this.#gates.set(gateKeyInView(event.tree, event.command), event);
        return;
      case 'budget':
        this.#budget = event;
        this.#cap = event.cap;
        return;
      case 'run_end':
        return this.#finish(event);
      case 'delivered':
        this.#end = this.#end && { ...this.#end, delivered: event.delivered };
        return;
      case 'session_end':
        return this.#endSession(event);
      case 'network':
        return this.#connect(event);
      default: // every other event tells of one agent
        return this.#agent(event)?.take(event);
    }
  }

  #connect({ host: name, port, allowed, times = 1 }: Of<'network'>): void {
    const host = `${name}:${port}`;
    if (!allowed) this.#blockedHosts.set(host, (this.#blockedHosts.get(host) ?? 0) + times);
  }

  #begin(event: Of<'run_start'>): void {
    this.#id = event.run ?? '';
    this.#settings = event;
    const isResumed = this.#isBegun;
    this.#isBegun = true;
    if (!isResumed) return;
    this.#end = undefined;
    this.#proposed = undefined;
    this.#isPaused = false;
    this.#coordinator.rest();
    for (const task of this.#tasks.values()) task.wake();
  }

  #endSession(event: Of<'session_end'>): void {
    this.#agent(event)?.take(event);
    if (event.task === undefined) this.#coordinator.rest();
  }

  #pause({ paused }: Of<'run_pause'>): void {
    this.#isPaused = paused;
  }

  #propose(tasks: readonly PlannedTask[] | undefined): void {
    this.#proposed = tasks;
  }

  #plan({ tasks, round, by }: Of<'plan_ready'>): void {
    this.#proposed = undefined;
    this.#plans.push({ round, by, tasks: tasks.map(({ id }) => id) });
    for (const plan of tasks) {
      const known = this.#tasks.get(plan.id);
      if (known === undefined) this.#tasks.set(plan.id, new Task(plan, round));
      else if (!isDone(known.state)) known.planAgain(plan, round);
    }
  }

  /** Moves the reopened tasks to the last plan. */
  #reopen({ tasks }: Of<'tasks_reopened'>): void {
    const last = this.#plans.pop();
    if (last === undefined) return;
    const ids = tasks.map(({ id }) => id);
    this.#plans.push({ ...last, tasks: [...last.tasks.filter((id) => !ids.includes(id)), ...ids] });
    for (const plan of tasks) this.#tasks.get(plan.id)?.planAgain(plan, last.round);
  }

  #endAttempt(event: Of<'task_end'>): void {
    const task = this.#task(event);
    if (task === undefined) return;
    const clock = this.#time.ms;
    if (task.isOpen && event.status === 'finished') {
      this.#durations.sumMs += task.attemptWorkedMs(clock, Date.parse(event.at));
      this.#durations.count += 1;
    }
    task.endAttempt(event, clock);
  }

  #endMerge(event: Of<'merge_end'>): void {
    const task = this.#task(event);
    if (task === undefined) return;
    task.endMerge(event, this.#time.ms);
    if (event.outcome === 'landed' && event.commit !== undefined)
      this.#landed.push({ task: task.id, commit: event.commit });
  }

  #finish(event: RecordedRunEnd): void {
    this.#end = event;
    this.#proposed = undefined;
    this.#coordinator.rest();
    for (const row of event.tasks) this.#tasks.get(row.task)?.become(row, this.#time.ms);
  }

  #task({ task }: Recorded): Task | undefined {
    return task === undefined ? undefined : this.#tasks.get(task);
  }

  #agent({ task: id, attempt }: Recorded): AgentProgress | undefined {
    if (id === undefined) return this.#coordinator;
    const task = this.#tasks.get(id);
    const isCurrent = task?.isOpen === true && (attempt === undefined || attempt === task.attempts);
    return isCurrent ? task.progress : undefined;
  }
}

/** Returns one row per task for `run_end`. A task without an end is cancelled. */
export function taskRowsOfState(state: RunState): readonly TaskRow[] {
  return [...state.tasks.values()].map((task): TaskRow => {
    const { id, plan, attempts, files, commit, branch, usage, cost, waitMs, summary, failure } = task;
    const { startedMs, endedMs } = task;
    const status = isProgressEnded(task.state) ? task.state : 'cancelled';
    const reason =
      task.reason ??
      (isProgressEnded(task.state) ? undefined : attempts === 0 ? 'it was not begun' : 'it was not finished');
    return {
      task: id,
      title: plan.title,
      status,
      attempts,
      files,
      ...(commit !== undefined && { commit }),
      ...(branch !== undefined && status !== 'landed' && { branch }),
      usage,
      ...(cost !== undefined && { cost }),
      waits: waitMs,
      ...(startedMs !== undefined && endedMs !== undefined && { elapsedMs: task.workedMs(endedMs, 0) }),
      // A task that is done without an attempt came from the cache.
      ...(attempts === 0 && isDone(status) && { cached: true }),
      ...(summary !== undefined && { summary }),
      ...(reason !== undefined && !isDone(status) && { reason }),
      ...(failure !== undefined && !isDone(status) && { failure }),
    };
  });
}

/** True for a writing task that changed nothing and whose gates passed on its base. */
export function isUnchangedInView({ state, plan }: Pick<TaskProgress, 'state' | 'plan'>): boolean {
  return state === 'done' && plan.mode === 'write';
}

function gateKeyInView(tree: string, command: string): string {
  return `${tree} ${command}`;
}

/** Returns the time of the longest chain of dependent tasks. More workers can't shorten it. */
function longestChainMsOfState(tasks: ReadonlyMap<string, TaskProgress>, left: ReadonlyMap<string, number>): number {
  const known = new Map<string, number>();
  const chainMs = (id: string): number => {
    const before = known.get(id);
    if (before !== undefined) return before;
    known.set(id, 0); // ends a cycle; no valid plan has one
    const sofar = tasks.get(id)?.plan.dependsOn.map(chainMs) ?? [];
    const ms = Math.max(0, ...sofar) + (left.get(id) ?? 0);
    known.set(id, ms);
    return ms;
  };
  return Math.max(0, ...left.keys().map(chainMs));
}
