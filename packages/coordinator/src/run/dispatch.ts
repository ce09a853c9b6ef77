// Starts ready tasks in plan order, as many at once as there are workers.
//
// A task waits until its dependencies have landed. If one of them fails, only its dependents are skipped. A task holds
// a worker slot only during an attempt, not while it waits to land.

import { setImmediate as immediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import { failureOf } from '@drover/core/agent/limits';
import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError } from '@drover/core/errors';
import { isDone, type TaskStatus } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import { waits } from '../plan/graph.ts';

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
};

const BAD: ReadonlySet<TaskStatus> = new Set(['failed', 'conflict', 'gate_failed']);

export async function dispatch(plan: Dispatch, signal: AbortSignal): Promise<void> {
  const { ordered, settled, runTask, skip, failuresMax } = plan;
  const slots = new WorkerSlots(Math.max(1, plan.workers), plan.limit);
  const waiting = waits(ordered);
  const hasty = new AbortController();
  const stop = AbortSignal.any([signal, hasty.signal]);
  const ends = new Map<string, Promise<TaskStatus>>();
  let failures = [...settled.values()].filter((status) => BAD.has(status)).length;
  const stopIfTooMany = () => {
    if (failures >= failuresMax && !stop.aborted) hasty.abort(new DroverError(tooMany(failedWords(failures))));
  };
  stopIfTooMany();

  const settle = async (task: PlannedTask, at: number): Promise<TaskStatus> => {
    const known = settled.get(task.id);
    if (known !== undefined) return known;
    const { dependsOn, follows } = waiting.get(task.id) ?? { dependsOn: [], follows: [] };
    const statuses = await Promise.all(dependsOn.map(async (id) => (await ends.get(id)) ?? settled.get(id)));
    await Promise.all(follows.map(async (id) => ends.get(id)));
    const missing = statuses.findIndex((status) => status !== undefined && !isDone(status));
    const reason =
      whyStopped(signal, hasty.signal) ??
      (missing === -1 ? undefined : `it depends on ${dependsOn[missing]}, which is ${worded(statuses[missing])}`);
    const status = reason === undefined ? await runTask(task, slots.slotAt(-at, stop), stop) : undefined;
    if (status === undefined) {
      const why = reason ?? whyStopped(signal, hasty.signal) ?? 'no worker was free for it';
      skip(task, why, hasty.signal.aborted && !signal.aborted ? failureOf(hasty.signal) : undefined);
      return signal.aborted ? 'cancelled' : 'skipped';
    }
    if (!isDone(status) && plan.failFast) hasty.abort(new DroverError(tooMany(FAILED_FAST)));
    if (BAD.has(status)) failures += 1;
    stopIfTooMany();
    const why = plan.whyStop?.();
    if (why !== undefined && !stop.aborted) hasty.abort(new DroverError(tooMany(why)));
    return status;
  };
  // In order, so that a task finds those it waits for.
  ordered.forEach((task, at) => ends.set(task.id, settle(task, at)));
  // Waits for all, even if one throws: no work may continue after the caller returns.
  const all = await Promise.allSettled(ends.values());
  const broken = all.find((end) => end.status === 'rejected');
  if (broken !== undefined) throw broken.reason;
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

  constructor(count: number, limit: Limiter | undefined) {
    this.#limit = limit;
    this.#queue = new PQueue({ concurrency: count });
    this.#free = Array.from({ length: count }, (_, at) => at + 1);
  }

  slotAt(priority: number, stop: AbortSignal): WorkerSlot {
    return (use) =>
      this.#queue.add(
        async () => {
          // Yield once so the previous holder’s continuations run first.
          await immediate();
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

function whyStopped(signal: AbortSignal, hasty: AbortSignal): string | undefined {
  if (signal.aborted) return 'interrupted before it was started';
  return hasty.aborted ? describe(failureOf(hasty)) : undefined;
}

const FAILED_FAST = 'another task failed, and --fail-fast stops at the first';

function failedWords(failures: number): string {
  return `${failures} ${failures === 1 ? 'task has' : 'tasks have'} failed, and no more may`;
}

function tooMany(message: string): Failure {
  return { kind: 'limit.reached', limit: 'failures', message };
}

function worded(status: TaskStatus | undefined): string {
  return status === 'gate_failed' ? 'stopped by a gate' : status === 'conflict' ? 'in conflict' : (status ?? 'unknown');
}
