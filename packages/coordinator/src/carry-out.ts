// Carries out one plan: every task is attempted, its work lands or doesn't, and what became of each is told.

import { describe } from '@drover/core/failure';
import { NO_USAGE } from '@drover/core/model/usage';
import type { TaskStatus } from '@drover/core/task/run';
import type { PlannedTask } from '@drover/core/task/task';
import { setTimeout as sleep } from 'node:timers/promises';
import { attemptTask, type AttemptEnd, type Bench } from './attempt.ts';
import { dispatch, type Seat } from './dispatch.ts';
import { inOrder, waits, type Waits } from './graph.ts';
import type { Git } from './git.ts';
import { conflictMessage } from './merge/merge.ts';
import type { MergeTrain } from './merge/train.ts';
import { agentPastOf, type Before, type RunPast, type TaskPast } from './past.ts';
import type { Seed } from './seed.ts';

/** How long the others wait for the first worker's answer to begin, so that they find the cache warm. */
const WARM_UP_MS = 5_000;
/** How often a task that conflicts is tried again. */
const CONFLICTS_MAX = 1;

export type Plan = {
  readonly tasks: readonly PlannedTask[];
  readonly system: string;
  readonly seed: Seed;
};

export type Conditions = {
  readonly bench: Bench;
  readonly train: MergeTrain;
  readonly base: string;
  readonly workers: number;
  readonly failFast: boolean;
  readonly attemptsMax: number;
  /** What the run went through before a crash. */
  readonly past: RunPast | undefined;
  /** What is settled, in this process or before; filled as tasks end. */
  readonly statuses: Map<string, TaskStatus>;
  /** The integration head with a task's work; filled as tasks land. */
  readonly landed: Map<string, string>;
  /** How many attempts a task has had; filled as they begin. */
  readonly attempts: Map<string, number>;
};

export async function carryOut(plan: Plan, conditions: Conditions, signal: AbortSignal): Promise<void> {
  const { bench, train, statuses, past } = conditions;
  const ordered = inOrder(plan.tasks);
  // What a later plan names again is to be done again.
  const settled = new Map(
    [...statuses].filter(([id, status]) => isGood(status) || !ordered.some((task) => task.id === id)),
  );
  for (const { id } of ordered) {
    const known = past?.tasks.get(id)?.status;
    if (known !== undefined && !statuses.has(id)) settled.set(id, known);
  }
  const waiting = waits(ordered);
  const open = ordered.filter(({ id, mode }) => mode === 'write' && !settled.has(id));
  train.expect(
    open.map(({ id }) => {
      const { dependsOn = [], follows = [] } = waiting.get(id) ?? {};
      return { id, waitsFor: [...dependsOn, ...follows] };
    }),
  );
  // Those that had conflicted before a crash went to the end then, one after the other.
  for (const id of past?.conflicts ?? []) if (open.some((task) => task.id === id)) train.sendBack(id);

  const warm = new WarmUp();
  await dispatch(
    {
      ...{ ordered, settled, workers: conditions.workers, failFast: conditions.failFast },
      carryOut: async (task, seat, stop) => {
        const status = await settleTask({ task, plan, conditions, seat, warm, waits: waiting.get(task.id) }, stop);
        if (status !== 'landed' && task.mode === 'write') train.withdraw(task.id);
        statuses.set(task.id, status);
        return status;
      },
      skip: (task, because) => {
        if (task.mode === 'write') train.withdraw(task.id);
        statuses.set(task.id, signal.aborted ? 'cancelled' : 'skipped');
        const status = signal.aborted ? 'cancelled' : 'skipped';
        bench.tell(
          { type: 'task_end', status, again: false, reason: because, files: [], usage: NO_USAGE },
          { task: task.id },
        );
      },
    },
    signal,
  );
  for (const [id, status] of settled) if (!statuses.has(id)) statuses.set(id, status);
}

function isGood(status: TaskStatus): boolean {
  return status === 'landed' || status === 'done';
}

type Work = {
  readonly task: PlannedTask;
  readonly plan: Plan;
  readonly conditions: Conditions;
  readonly seat: Seat;
  readonly warm: WarmUp;
  readonly waits: Waits | undefined;
};

async function settleTask(work: Work, signal: AbortSignal): Promise<TaskStatus> {
  const { task, plan, conditions, seat, warm } = work;
  const { bench, train, attempts, landed } = conditions;
  const progress = new Progress(work);
  await progress.recall(bench.slots.store.git);
  bench.tell({ type: 'task_ready' }, { task: task.id });
  for (;;) {
    const end =
      progress.takeFinished() ??
      (await seat(async (worker) => {
        await warm.turn(signal);
        const next = progress.next();
        attempts.set(task.id, next.attempt);
        const { system, seed } = plan;
        const past =
          next.goesOn && conditions.past
            ? agentPastOf(conditions.past, { task: task.id, attempt: next.attempt }, seed.messages)
            : undefined;
        const { base, attempt, before, mayFail } = next;
        const details = { ...(before !== undefined && { before }), ...(past !== undefined && { past }) };
        return attemptTask(
          bench,
          { task, attempt, worker, base, system, seed, mayFail, onAnswer: warm.done, ...details },
          signal,
        ).finally(warm.done);
      }));
    if (end.again) {
      progress.failed(end);
      continue;
    }
    if (end.status !== 'finished') return end.status;
    if (end.commit === undefined) return 'done';
    const title = bench.redact(task.title);
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
class Progress {
  conflicts: number;
  #failures: number;
  #attempts: number;
  #base: string;
  #before: string | undefined;
  readonly #conflict: Before['conflict'];
  #open: TaskPast['open'];
  #finished: TaskPast['finished'];
  readonly #attemptsMax: number;

  constructor({ task, conditions, waits: waiting }: Work) {
    const { past, base, landed, attempts, attemptsMax, statuses } = conditions;
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

/** The first to come goes ahead; the others wait until its answer begins. */
class WarmUp {
  #begun = false;
  readonly #warm = Promise.withResolvers<void>();
  readonly done = (): void => this.#warm.resolve();

  async turn(signal: AbortSignal): Promise<void> {
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
  }
}
