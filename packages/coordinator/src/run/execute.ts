// Carries out one plan: every task is attempted, its work lands or doesn't, and what became of each is told.

import { describe, type Failure } from '@drover/protocol/failures';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import { type TaskStatus, isDone } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import { setTimeout as sleep } from 'node:timers/promises';
import { attemptTask, type AttemptEnd, type AttemptContext } from './attempt.ts';
import { dispatch, type Dispatch, type Limiter, type WorkerSlot } from './dispatch.ts';
import { inOrder, waits, type Waits } from '../plan/graph.ts';
import type { Git } from '../git/git.ts';
import { conflictMessage } from '../merge/merge.ts';
import type { MergeTrain } from '../merge/train.ts';
import { readAgentHistory, type Before, type RunHistory, type TaskHistory } from './history.ts';
import type { Seed } from '../plan/seed.ts';

/** How long the others wait for the first worker's answer to begin, so that they find the cache warm. */
const WARM_UP_MS = 5_000;
/** How often a task that conflicts is tried again. */
const CONFLICTS_MAX = 1;

export type Plan = {
  readonly tasks: readonly PlannedTask[];
  readonly system: string;
  readonly seed: Seed;
};

export type ExecuteContext = {
  readonly context: AttemptContext;
  readonly train: MergeTrain;
  readonly base: string;
  readonly workers: number;
  readonly limit: Limiter | undefined;
  readonly failFast: boolean;
  readonly failuresMax: number;
  readonly attemptsMax: number;
  /** What comes of these tasks is known from an earlier run. */
  readonly known: ReadonlyMap<string, KnownResult>;
  /** So many go ahead; the judge says why the others should not follow. */
  readonly canary: { readonly tasks: number; readonly judge: () => Failure | undefined } | undefined;
  /** What the run went through before a crash. */
  readonly past: RunHistory | undefined;
  /** What is settled, in this process or before; filled as tasks end. */
  readonly statuses: Map<string, TaskStatus>;
  /** The integration head with a task's work; filled as tasks land. */
  readonly landed: Map<string, string>;
  /** How many attempts a task has had; filled as they begin. */
  readonly attempts: Map<string, number>;
};

/** The work of a task, as a commit on the run's base; without one there is nothing to change. */
export type KnownResult = { readonly commit?: string; readonly files: readonly string[]; readonly summary: string };

export async function executePlan(plan: Plan, conditions: ExecuteContext, signal: AbortSignal): Promise<void> {
  const { statuses, canary } = conditions;
  const ordered = inOrder(plan.tasks);
  const settled = statusesBefore(ordered, conditions);
  const waiting = waits(ordered);
  expectOpen(
    ordered.filter(({ id, mode }) => mode === 'write' && !settled.has(id)),
    waiting,
    conditions,
  );
  const skip = skipper(conditions, signal);
  const work = worker({ plan, conditions, waiting, skip }, signal);
  const ahead = canary?.tasks ?? ordered.length;
  await work(ordered.slice(0, ahead), settled);
  const others = ordered.slice(ahead);
  const obstacle = others.length === 0 || signal.aborted ? undefined : canary?.judge();
  if (obstacle === undefined) await work(others, new Map([...settled, ...statuses]));
  else for (const task of others) if (!settled.has(task.id)) skip(task, describe(obstacle), obstacle);
  for (const [id, status] of settled) if (!statuses.has(id)) statuses.set(id, status);
}

/** The statuses that hold when a plan begins: a task that did not work out and is named again has none. */
function statusesBefore(ordered: readonly PlannedTask[], { statuses, past }: ExecuteContext): Map<string, TaskStatus> {
  const settled = new Map(
    [...statuses].filter(([id, status]) => isDone(status) || !ordered.some((task) => task.id === id)),
  );
  for (const { id } of ordered) {
    const known = past?.tasks.get(id)?.status;
    if (known !== undefined && !statuses.has(id)) settled.set(id, known);
  }
  return settled;
}

function expectOpen(
  open: readonly PlannedTask[],
  waiting: ReadonlyMap<string, Waits>,
  { train, past }: ExecuteContext,
): void {
  train.expect(
    open.map(({ id }) => {
      const { dependsOn = [], follows = [] } = waiting.get(id) ?? {};
      return { id, waitsFor: [...dependsOn, ...follows] };
    }),
  );
  // Those that had conflicted before a crash went to the end then, one after the other.
  for (const id of past?.conflicts ?? []) if (open.some((task) => task.id === id)) train.sendBack(id);
}

function skipper({ context, train, statuses }: ExecuteContext, signal: AbortSignal): Dispatch['skip'] {
  return (task, reason, failure) => {
    const status = signal.aborted ? 'cancelled' : 'skipped';
    if (task.mode === 'write') train.withdraw(task.id);
    statuses.set(task.id, status);
    const why = { reason, ...(failure !== undefined && { failure }) };
    context.tell({ type: 'task_end', status, again: false, ...why, files: [], usage: NO_USAGE }, { task: task.id });
  };
}

type Execution = {
  readonly plan: Plan;
  readonly conditions: ExecuteContext;
  readonly waiting: ReadonlyMap<string, Waits>;
  readonly skip: Dispatch['skip'];
};

/** Returns a function that dispatches tasks of the plan; the first of all of them warms the cache. */
function worker({ plan, conditions, waiting, skip }: Execution, signal: AbortSignal) {
  const { train, statuses, workers, limit, failFast, failuresMax } = conditions;
  const warm = new WarmUp();
  const runTask: Dispatch['runTask'] = async (task, slot, stop) => {
    const status = await settleTask({ task, plan, conditions, slot, warm, waits: waiting.get(task.id) }, stop);
    if (status === undefined) return undefined;
    if (status !== 'landed' && task.mode === 'write') train.withdraw(task.id);
    statuses.set(task.id, status);
    return status;
  };
  return (ordered: readonly PlannedTask[], settled: ReadonlyMap<string, TaskStatus>) =>
    dispatch({ ordered, settled, workers, limit, skip, failFast, failuresMax, runTask }, signal);
}

type TaskContext = {
  readonly task: PlannedTask;
  readonly plan: Plan;
  readonly conditions: ExecuteContext;
  readonly slot: WorkerSlot;
  readonly warm: WarmUp;
  readonly waits: Waits | undefined;
};

/** Undefined if the run stopped before a worker slot was free. */
async function settleTask(work: TaskContext, signal: AbortSignal): Promise<TaskStatus | undefined> {
  const { task, plan, conditions, slot, warm } = work;
  const { context, train, attempts, landed } = conditions;
  const progress = new TaskAttempts(work);
  await progress.recall(context.slots.store.git);
  context.tell({ type: 'task_ready' }, { task: task.id });
  for (;;) {
    const end =
      progress.takeFinished() ??
      progress.takeKnown(context) ??
      (await slot(async (worker) => {
        const next = progress.next();
        attempts.set(task.id, next.attempt);
        const { system, seed } = plan;
        const { base, attempt, before, mayFail, goesOn } = next;
        const past =
          goesOn && conditions.past
            ? readAgentHistory(conditions.past, { task: task.id, attempt }, seed.messages)
            : undefined;
        const details = { goesOn, ...(before !== undefined && { before }), ...(past !== undefined && { past }) };
        return attemptTask(
          context,
          { task, attempt, worker, base, system, seed, mayFail, turn: warm.turn, onAnswer: warm.done, ...details },
          signal,
        ).finally(warm.done);
      }));
    if (end === undefined) return undefined;
    if (end.again) {
      progress.failed(end);
      continue;
    }
    if (end.status !== 'finished') return end.status;
    if (end.commit === undefined) return 'done';
    const title = context.redact(task.title);
    const mayRetry = progress.conflicts < CONFLICTS_MAX;
    const landing = await train.land({ task: task.id, commit: end.commit, title, summary: end.summary, mayRetry });
    if (landing.outcome === 'landed') {
      landed.set(task.id, landing.commit);
      return 'landed';
    }
    if (landing.outcome !== 'conflict' || !landing.again) return landing.outcome;
    progress.conflicted(landing.onto, landing.message);
  }
}

/** How far a task has come, before a crash and since. */
class TaskAttempts {
  conflicts: number;
  #failures: number;
  #attempts: number;
  #base: string;
  #before: string | undefined;
  readonly #conflict: Before['conflict'];
  #open: TaskHistory['open'];
  #finished: TaskHistory['finished'];
  #known: KnownResult | undefined;
  readonly #task: PlannedTask;
  readonly #attemptsMax: number;

  constructor({ task, conditions, waits: waiting }: TaskContext) {
    const { past, base, landed, attempts, attemptsMax, statuses, known } = conditions;
    this.#task = task;
    this.#known = known.get(task.id);
    // A task that ended and is named again by a later plan begins anew; only its attempts go on counting.
    const before = statuses.has(task.id) ? undefined : past?.tasks.get(task.id);
    this.conflicts = before?.conflicts ?? 0;
    this.#failures = before?.failures ?? 0;
    this.#attempts = attempts.get(task.id) ?? before?.attempts ?? 0;
    this.#base = before?.before?.conflict?.onto ?? baseOf(waiting, base, landed);
    this.#before = before?.before?.reason;
    this.#conflict = before?.before?.conflict;
    this.#open = before?.open;
    this.#finished = before?.finished;
    this.#attemptsMax = attemptsMax;
  }

  /** What there was to say about a conflict before the crash is found again, in the same words. */
  async recall(git: Git): Promise<void> {
    if (this.#conflict !== undefined) this.#before = (await conflictMessage(git, this.#conflict)) ?? this.#before;
  }

  /** What an attempt before the crash has finished, and only has to land. */
  takeFinished(): AttemptEnd | undefined {
    const finished = this.#finished;
    this.#finished = undefined;
    return finished && { ...finished, status: 'finished', again: false };
  }

  /** What an earlier run has found out, where nobody has begun anew. */
  takeKnown(context: AttemptContext): AttemptEnd | undefined {
    const known = this.#known;
    this.#known = undefined;
    if (known === undefined || this.#attempts > 0) return undefined;
    const { id } = this.#task;
    const { commit, files, summary } = known;
    const branch = `drover/${context.run}/${id}`;
    const left = { files, summary, ...(commit !== undefined && { commit }) };
    context.tell(
      {
        type: 'task_end',
        status: 'finished',
        again: false,
        usage: NO_USAGE,
        cached: true,
        ...left,
        ...(commit !== undefined && { branch }),
      },
      { task: id },
    );
    return { ...left, status: 'finished', again: false };
  }

  next() {
    const open = this.#open;
    this.#open = undefined;
    const attempt = open?.attempt ?? (this.#attempts += 1);
    const mayFail = this.#failures + 1 < this.#attemptsMax;
    return { attempt, base: open?.base ?? this.#base, before: this.#before, goesOn: open !== undefined, mayFail };
  }

  failed({ failure }: AttemptEnd): void {
    this.#failures += 1;
    this.#before = `The one before failed: ${failure === undefined ? 'nobody knows why' : describe(failure)}. Its changes are gone: begin again.`;
  }

  conflicted(onto: string, message: string): void {
    this.conflicts += 1;
    this.#base = onto;
    this.#before = message;
  }
}

/** What it waited for is in its base: the head as it was with the last of those. */
function baseOf(waiting: Waits | undefined, base: string, landed: ReadonlyMap<string, string>): string {
  const before = new Set([...(waiting?.dependsOn ?? []), ...(waiting?.follows ?? [])]);
  const last = [...landed.keys()].findLast((id) => before.has(id));
  return last === undefined ? base : (landed.get(last) ?? base);
}

/** The first that has a workspace goes ahead; the others wait until its answer begins. */
class WarmUp {
  #begun = false;
  readonly #warm = Promise.withResolvers<void>();
  readonly done = (): void => this.#warm.resolve();

  readonly turn = async (signal: AbortSignal): Promise<void> => {
    if (!this.#begun) {
      this.#begun = true;
      return;
    }
    const timer = new AbortController();
    const late = sleep(WARM_UP_MS, undefined, { signal: AbortSignal.any([timer.signal, signal]) }).catch(
      () => undefined,
    );
    await Promise.race([this.#warm.promise, late]);
    timer.abort();
  };
}
