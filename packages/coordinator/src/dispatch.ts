// Starts what is ready, as many at a time as there are workers, in plan order.
//
// A task waits until those it depends on have landed; where one of them did not, it is skipped and nobody
// else is. A worker's place is held only while an attempt works: a task that waits to land holds none.

import PQueue from 'p-queue';
import { failureOf } from '@drover/core/agent/limits';
import { describe, DroverError, type Failure } from '@drover/core/failure';
import type { TaskStatus } from '@drover/core/task/run';
import type { PlannedTask } from '@drover/core/task/task';
import { waits } from './plan/graph.ts';

/** Runs `use` as soon as a worker is free, with that worker's number. */
export type Seat = <Result>(use: (worker: number) => Promise<Result>) => Promise<Result>;

export type Dispatch = {
  readonly ordered: readonly PlannedTask[];
  readonly workers: number;
  readonly failFast: boolean;
  /** The rest is stopped when so many have not worked out. */
  readonly failuresMax: number;
  /** What earlier plans, or this one before a crash, have settled for good. */
  readonly settled: ReadonlyMap<string, TaskStatus>;
  readonly carryOut: (task: PlannedTask, seat: Seat, signal: AbortSignal) => Promise<TaskStatus>;
  readonly skip: (task: PlannedTask, because: string, failure?: Failure) => void;
};

const GOOD: ReadonlySet<TaskStatus> = new Set(['landed', 'done']);
const BAD: ReadonlySet<TaskStatus> = new Set(['failed', 'conflict', 'gate_failed']);

export async function dispatch(plan: Dispatch, signal: AbortSignal): Promise<void> {
  const { ordered, settled, carryOut, skip, failuresMax } = plan;
  const seats = new Seats(Math.max(1, plan.workers));
  const waiting = waits(ordered);
  const hasty = new AbortController();
  const stop = AbortSignal.any([signal, hasty.signal]);
  const ends = new Map<string, Promise<TaskStatus>>();
  let failures = [...settled.values()].filter((status) => BAD.has(status)).length;
  const stopIfTooMany = () => {
    if (failures >= failuresMax && !stop.aborted) hasty.abort(new DroverError(tooMany(failures)));
  };
  stopIfTooMany();

  const settle = async (task: PlannedTask, at: number): Promise<TaskStatus> => {
    const known = settled.get(task.id);
    if (known !== undefined) return known;
    const { dependsOn, follows } = waiting.get(task.id) ?? { dependsOn: [], follows: [] };
    const statuses = await Promise.all(dependsOn.map((id) => ends.get(id) ?? settled.get(id)));
    await Promise.all(follows.map((id) => ends.get(id)));
    const missing = statuses.findIndex((status) => status !== undefined && !GOOD.has(status));
    const reason =
      whyStopped(signal, hasty.signal) ??
      (missing === -1 ? undefined : `it depends on ${dependsOn[missing]}, which is ${worded(statuses[missing])}`);
    if (reason !== undefined) {
      skip(task, reason, hasty.signal.aborted && !signal.aborted ? failureOf(hasty.signal) : undefined);
      return signal.aborted ? 'cancelled' : 'skipped';
    }
    const status = await carryOut(task, seats.seatAt(-at), stop);
    if (!GOOD.has(status) && plan.failFast) hasty.abort(new DroverError(FAILED_FAST));
    if (BAD.has(status)) failures += 1;
    stopIfTooMany();
    return status;
  };
  // In order, so that a task finds those it waits for.
  ordered.forEach((task, at) => ends.set(task.id, settle(task, at)));
  // All of them, also where one has thrown: nothing may go on behind the back of whoever called.
  const all = await Promise.allSettled(ends.values());
  const broken = all.find((end) => end.status === 'rejected');
  if (broken !== undefined) throw broken.reason;
}

class Seats {
  readonly #queue: PQueue;
  readonly #free: number[];

  constructor(count: number) {
    this.#queue = new PQueue({ concurrency: count });
    this.#free = Array.from({ length: count }, (_, at) => at + 1);
  }

  seatAt(priority: number): Seat {
    return (use) =>
      this.#queue.add(
        async () => {
          const worker = this.#free.shift();
          if (worker === undefined) throw new Error('more workers are at work than there are');
          try {
            return await use(worker);
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

const FAILED_FAST: Failure = {
  kind: 'limit.reached',
  limit: 'failures',
  message: 'another task failed, and --fail-fast stops at the first',
};

function tooMany(failures: number): Failure {
  const message = `${failures} ${failures === 1 ? 'task has' : 'tasks have'} failed, and no more may`;
  return { kind: 'limit.reached', limit: 'failures', message };
}

function worded(status: TaskStatus | undefined): string {
  return status === 'gate_failed' ? 'stopped by a gate' : status === 'conflict' ? 'in conflict' : (status ?? 'unknown');
}
