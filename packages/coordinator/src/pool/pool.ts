// The pool: attempts in a few threads, several in each. Threads are not workers: workers wait most of the time.
//
// Guarantees
//   1. At most `threadsMax` threads have attempts, each at most its share of `workersMax`. More attempts wait.
//   2. A thread that throws, exits, runs out of heap or gives no sign of life is gone for good. The attempt that ended
//      it fails with `worker.lost`: what it had open is closed, and its later messages are dropped.
//   3. The other attempts of that thread are displaced: the caller resumes them. If it is unknown which attempt ended
//      the thread, each resumes in a thread of its own, so that the next loss names the culprit. Those threads come on
//      top of `threadsMax`, so that no other attempt waits for suspects.

import type { Diagnose } from '@drover/core/diagnosis';
import { DroverError } from '@drover/core/errors';
import type { TaskLink } from '@drover/core/task/link';
import type { Displaced, RunTask, TaskSpec } from '@drover/core/task/task';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { Order } from '@drover/core/task/order';
import type { LauncherAddress } from '@drover/core/tools/process/launcher';
import { ThreadAttempt, wordsOfThreadError } from './thread-attempt.ts';
import { Threads } from './threads.ts';

// A limit of each thread, and what each further attempt in it adds.
const HEAP_MB_DEFAULT = 512;
const HEAP_MB_PER_ATTEMPT = 64;
const GRACE_MS_DEFAULT = 2_000;
const SILENT_MS_DEFAULT = 8_000;
const SUSPECTS_MIN = 2; // at work at once

export type PoolOptions = {
  readonly entry: URL | string; // the file whose `work` a thread runs
  readonly threadsMax: number;
  readonly workersMax?: number; // attempts at work at once; default: one in each thread
  readonly launcher?: LauncherAddress; // absent if there is none
  readonly heapMb?: number; // of one thread
  readonly graceMs?: number; // for a task that is asked to stop
  readonly silentMs?: number; // after which a thread that is busy and gives no sign of life is taken for lost
  readonly onDiagnostic: Diagnose;
};

export type Pool = {
  readonly run: RunTask;
  /** Starts so many threads in the background, with all they need loaded. */
  readonly warm: (threads: number) => void;
  /** Cancels the attempts at work. Idempotent. */
  readonly close: () => Promise<void>;
};

export function openPool(options: PoolOptions): Pool {
  const crews = new Crews(options);
  return {
    run: (spec, link, signal) => crews.run(spec, link, signal),
    warm: (count) => crews.shared.warm(count),
    close: () => crews.close(),
  };
}

/** The threads that attempts share, and those of suspects, which are started when the first suspect comes. */
class Crews {
  readonly shared: Crew;
  readonly #options: PoolOptions;
  #single: Crew | undefined;
  #closed: Promise<unknown> | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { threadsMax, workersMax = threadsMax } = options;
    this.shared = new Crew(options, { threadsMax, attemptsMax: Math.ceil(workersMax / threadsMax) });
  }

  run(spec: TaskSpec, link: TaskLink, signal: AbortSignal): Promise<TaskOutcome | Displaced> {
    if (spec.alone !== true || this.#closed !== undefined) return this.shared.run(spec, link, signal);
    const threadsMax = Math.max(SUSPECTS_MIN, this.#options.threadsMax);
    this.#single ??= new Crew(this.#options, { threadsMax, attemptsMax: 1 });
    return this.#single.run(spec, link, signal);
  }

  async close(): Promise<void> {
    this.#closed ??= Promise.all([this.shared.close(), this.#single?.close()]);
    await this.#closed;
  }
}

type Size = { readonly threadsMax: number; readonly attemptsMax: number };

class Crew {
  readonly #options: PoolOptions;
  readonly #size: Size;
  readonly #threads: Threads;
  readonly #closing = new AbortController();
  readonly #running = new Map<ThreadAttempt, Promise<unknown>>();
  readonly #waiting = new Set<() => void>(); // in the order in which they came
  #busy = 0;

  constructor(options: PoolOptions, size: Size) {
    const { entry, silentMs = SILENT_MS_DEFAULT, heapMb = HEAP_MB_DEFAULT } = options;
    this.#options = options;
    this.#size = size;
    this.#threads = new Threads({
      ...size,
      entry,
      silentMs,
      heapMb: heapMb + (size.attemptsMax - 1) * HEAP_MB_PER_ATTEMPT,
      onIdleLost: (error) => this.#notice(error),
    });
  }

  warm(count: number): void {
    const { launcher } = this.#options;
    for (let thread = 0; thread < Math.min(count, this.#size.threadsMax); thread++) {
      const order: Order = { ...(launcher !== undefined && { launcher }), warm: true };
      this.#threads.warm(order).catch((error: unknown) => {
        if (!this.#closing.signal.aborted) this.#diagnose('a thread could not be made ready', error);
      });
    }
  }

  async run(spec: TaskSpec, link: TaskLink, signal: AbortSignal): Promise<TaskOutcome | Displaced> {
    const stop = AbortSignal.any([signal, this.#closing.signal]);
    const { launcher, graceMs = GRACE_MS_DEFAULT, silentMs = SILENT_MS_DEFAULT, onDiagnostic } = this.#options;
    const threads = this.#threads;
    const context = { ...(launcher !== undefined && { launcher }), graceMs, silentMs, onDiagnostic, threads };
    const attempt = new ThreadAttempt(spec, link, context);
    const ended = this.#inTurn(stop, () => attempt.run(stop));
    this.#running.set(attempt, ended);
    try {
      return await ended;
    } finally {
      this.#running.delete(attempt);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new DroverError({ kind: 'aborted', by: 'shutdown' }));
    await Promise.all(this.#running.values());
    await this.#threads.close();
  }

  // Not left to piscina: after a thread dies, it starts no other for the tasks that wait in its queue.
  async #inTurn<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    const most = this.#size.threadsMax * this.#size.attemptsMax;
    while (this.#busy >= most && !signal.aborted) await this.#aChance(signal);
    this.#busy += 1;
    try {
      return await run();
    } finally {
      this.#busy -= 1;
      const [next] = this.#waiting;
      if (next !== undefined) this.#waiting.delete(next);
      next?.();
    }
  }

  async #aChance(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    this.#waiting.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    await promise;
    signal.removeEventListener('abort', wake);
    this.#waiting.delete(wake);
  }

  // A thread that had no task: one that could not be started, or that fell over something a task had left.
  #notice(error: unknown): void {
    this.#diagnose('a thread without a task was lost', error);
    for (const attempt of this.#running.keys()) attempt.threadLost(wordsOfThreadError(error));
  }

  #diagnose(message: string, error: unknown): void {
    this.#options.onDiagnostic(message, { error: wordsOfThreadError(error) }, 'warn');
  }
}
