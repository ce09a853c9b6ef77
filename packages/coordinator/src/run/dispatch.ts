// Starts ready tasks in plan order, as many at once as there are workers.
//
// A task waits until its dependencies have landed. If one of them fails, only its dependents are skipped. A task holds
// a worker slot only during an attempt, not while it waits to land.

import { setImmediate as immediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError } from '@drover/core/errors';
import { isDone, type TaskStatus } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import { waitsOfPlan } from '../plan/graph.ts';
import { handled } from '@drover/core/promises';

/** Runs `use` as soon as a worker is free, with that worker's number; gives undefined where all was stopped by then. */
export type WorkerSlot = <Result>(use: (worker: number) => Promise<Result>) => Promise<Result | undefined>;

export type Dispatch = {
  readonly ordered: readonly PlannedTask[];
  readonly workers: number;
  /** Worker slots that this run shares with others, if it does. */
  readonly limit?: Limiter | undefined;
  readonly failFast: boolean;
  /** The rest is stopped when so many have not worked out. */
  readonly failuresMax: number;
  /** Final statuses from earlier plans, or from this one before a crash. */
  readonly settled: ReadonlyMap<string, TaskStatus>;
  /** Undefined if the run stopped before a worker slot was free. */
  readonly runTask: (task: PlannedTask, slot: WorkerSlot, signal: AbortSignal) => Promise<TaskStatus | undefined>;
  readonly skip: (task: PlannedTask, because: string, failure?: Failure) => void;
  /** Why no further task should start; undefined if others may. Asked after each task. */
  readonly whyStop?: () => string | undefined;
  /** Resolves when attempts may start: the user can pause the run. */
  readonly held?: (signal: AbortSignal) => Promise<void>;
  /** The status of a task that ended before it was started, because the user cancelled it. */
  readonly statusOf?: (task: string) => TaskStatus | undefined;
};

/** Tasks that are being carried out. */
export type Dispatched = {
  /** Resolves when all tasks are over, also those that were started again. */
  readonly done: Promise<void>;
  /** Starts tasks again that are over. */
  readonly start: (tasks: readonly PlannedTask[]) => void;
  /** Why no task can be started again; undefined if tasks can. */
  readonly why: () => string | undefined;
};

const BAD: ReadonlySet<TaskStatus> = new Set(['failed', 'conflict', 'gate_failed']);

export function dispatchTasks(plan: Dispatch, signal: AbortSignal): Dispatched {
  const { ordered, settled, runTask, skip, failuresMax, statusOf } = plan;
  const slots = new WorkerSlots(plan);
  const waiting = waitsOfPlan(ordered);
  const hasty = new AbortController();
  const stop = AbortSignal.any([signal, hasty.signal]);
  const ends = new Map<string, Promise<TaskStatus>>();
  const all: Promise<TaskStatus>[] = [];
  let failures = [...settled.values()].filter((status) => BAD.has(status)).length;
  const stopIfTooMany = () => {
    if (failures >= failuresMax && !stop.aborted)
      hasty.abort(new DroverError(tooManyTasksFailed(failedTaskWords(failures))));
  };
  stopIfTooMany();

  const settle = async (task: PlannedTask, at: number): Promise<TaskStatus> => {
    const { dependsOn, follows } = waiting.get(task.id) ?? { dependsOn: [], follows: [] };
    const statuses = await Promise.all(dependsOn.map(async (id) => (await ends.get(id)) ?? settled.get(id)));
    await Promise.all(follows.map(async (id) => ends.get(id)));
    const missing = statuses.findIndex((status) => status !== undefined && !isDone(status));
    const reason =
      whyDispatchStopped(signal, hasty.signal) ??
      (missing === -1
        ? undefined
        : `it depends on ${dependsOn[missing]}, which is ${wordedTaskStatus(statuses[missing])}`);
    const isOver = statusOf?.(task.id) !== undefined;
    const status = isOver || reason === undefined ? await runTask(task, slots.slotAt(-at, stop), stop) : undefined;
    if (status === undefined) {
      const why = reason ?? whyDispatchStopped(signal, hasty.signal) ?? 'no worker was free for it';
      skip(task, why, hasty.signal.aborted && !signal.aborted ? turnFailureOfSignal(hasty.signal) : undefined);
      return signal.aborted ? 'cancelled' : 'skipped';
    }
    if (!isDone(status) && status !== 'cancelled' && plan.failFast)
      hasty.abort(new DroverError(tooManyTasksFailed(FAILED_FAST)));
    if (BAD.has(status)) failures += 1;
    stopIfTooMany();
    const why = plan.whyStop?.();
    if (why !== undefined && !stop.aborted) hasty.abort(new DroverError(tooManyTasksFailed(why)));
    return status;
  };
  const begin = (task: PlannedTask, end: Promise<TaskStatus>): void => {
    ends.set(task.id, end);
    handled(end);
    all.push(end);
  };
  // In order, so that a task finds those it waits for.
  ordered.forEach((task, at) => {
    const known = settled.get(task.id);
    begin(task, known === undefined ? settle(task, at) : Promise.resolve(known));
  });
  return {
    done: allTasksSettled(all),
    start: (tasks) => tasks.forEach((task) => begin(task, settle(task, all.length))),
    why: () => whyDispatchStopped(signal, hasty.signal),
  };
}

/** Waits for all, even if one throws, and for those that are added meanwhile: no work may continue afterwards. */
async function allTasksSettled(all: readonly Promise<unknown>[]): Promise<void> {
  for (let count = -1; count !== all.length;) {
    count = all.length;
    await Promise.allSettled(all);
  }
  await Promise.all(all);
}

/** Runs at most `count` jobs at a time, in the order in which they came. */
export class Limiter {
  readonly #queue: PQueue;

  constructor(count: number) {
    this.#queue = new PQueue({ concurrency: Math.max(1, count) });
  }

  run<Result>(job: () => Promise<Result>): Promise<Result> {
    return this.#queue.add(job);
  }
}

class WorkerSlots {
  readonly #queue: PQueue;
  readonly #free: number[];
  readonly #limit: Limiter | undefined;
  readonly #held: Dispatch['held'];

  constructor({ workers, limit, held }: Dispatch) {
    const count = Math.max(1, workers);
    this.#limit = limit;
    this.#held = held;
    this.#queue = new PQueue({ concurrency: count });
    this.#free = Array.from({ length: count }, (_, at) => at + 1);
  }

  slotAt(priority: number, stop: AbortSignal): WorkerSlot {
    return (use) =>
      this.#queue.add(
        async () => {
          // Yield once so the previous holder’s continuations run first.
          await immediate();
          await this.#held?.(stop);
          if (stop.aborted) return undefined;
          const worker = this.#free.shift();
          if (worker === undefined) throw new Error('more workers are at work than there are');
          try {
            if (this.#limit === undefined) return await use(worker);
            return await this.#limit.run(async () => (stop.aborted ? undefined : use(worker)));
          } finally {
            this.#free.push(worker);
            this.#free.sort((a, b) => a - b);
          }
        },
        { priority },
      );
  }
}

function whyDispatchStopped(signal: AbortSignal, hasty: AbortSignal): string | undefined {
  if (signal.aborted) return 'interrupted before it was started';
  return hasty.aborted ? describe(turnFailureOfSignal(hasty)) : undefined;
}

const FAILED_FAST = 'another task failed, and --fail-fast stops at the first';

function failedTaskWords(failures: number): string {
  return `${failures} ${failures === 1 ? 'task has' : 'tasks have'} failed, and no more may`;
}

function tooManyTasksFailed(message: string): Failure {
  return { kind: 'limit.reached', limit: 'failures', message };
}

function wordedTaskStatus(status: TaskStatus | undefined): string {
  return status === 'gate_failed' ? 'stopped by a gate' : status === 'conflict' ? 'in conflict' : (status ?? 'unknown');
}
