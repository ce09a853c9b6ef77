// The pool: tasks in threads of their own, one task a thread at a time. Idle threads wait for the next task.
//
// HOW A TASK STOPS
//   It is asked, over its wire, and has a grace to end its processes and tell its end. Then its thread is
//   ended, which runs no `finally`, so what its calls had started is ended from here.
//
// WHAT BECOMES OF A LOST THREAD
//   One that throws, exits, runs out of heap or gives no sign of life is gone for good. Its attempt ends
//   with `worker.lost`, what it had open is closed, and nothing of it arrives later. The other threads
//   notice nothing.

import type { Diagnose } from '@drover/core/diagnosis';
import { setTimeout as delay } from 'node:timers/promises';
import { MessageChannel, type Worker } from 'node:worker_threads';
import { failureOf } from '@drover/core/agent/limits';
import { DroverError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import type { TaskLink } from '@drover/core/task/link';
import type { RunTask, TaskSpec } from '@drover/core/task/task';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import { type Order, serveTask } from '@drover/core/task/wire';
import type { LauncherAddress } from '@drover/core/tools/process/launcher';
import { endOrphans } from '@drover/core/tools/process/tree';
import { Piscina } from 'piscina';
import { Pulse } from './liveness.ts';
import { Unfinished } from './loss.ts';

const HEAP_MB_DEFAULT = 512;
// Small, because every thread has one: what lives short is collected more often instead.
const YOUNG_HEAP_MB = 4;
const GRACE_MS_DEFAULT = 2_000;
const SILENT_MS_DEFAULT = 8_000;
const EXIT_MS_MAX = 1_000;
const KILL_ROUNDS_MAX = 50;
const KILL_AGAIN_MS = 10;

export type PoolOptions = {
  readonly entry: URL | string; // the file whose `work` a thread runs
  readonly threadsMax: number;
  readonly launcher?: LauncherAddress; // absent where there is none
  readonly heapMb?: number; // of one thread
  readonly graceMs?: number; // for a task that is asked to stop
  readonly silentMs?: number; // after which a thread that is busy and gives no sign of life is taken for lost
  readonly onDiagnostic: Diagnose;
};

export type Pool = {
  readonly run: RunTask;
  /** Starts so many threads in the background, with all they need loaded. */
  readonly warm: (threads: number) => void;
  /** What still runs is cancelled. Once is enough. */
  readonly close: () => Promise<void>;
};

export function openPool(options: PoolOptions): Pool {
  const threads = new Threads(options);
  return {
    run: (spec, link, signal) => threads.run(spec, link, signal),
    warm: (count) => threads.warm(count),
    close: () => threads.close(),
  };
}

class Threads {
  readonly #options: PoolOptions;
  readonly #piscina: Piscina<Order, TaskOutcome | undefined>;
  readonly #closing = new AbortController();
  readonly #running = new Map<ThreadAttempt, Promise<TaskOutcome>>();
  readonly #waiting = new Set<() => void>(); // in the order in which they came
  #busy = 0;
  #closed: Promise<void> | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#piscina = new Piscina({
      filename: String(options.entry),
      name: 'work',
      minThreads: 0,
      maxThreads: options.threadsMax,
      idleTimeout: Infinity,
      // The default parks an idle thread in Atomics.wait, which freezes any timer left open.
      atomics: 'disabled',
      recordTiming: false,
      resourceLimits: {
        maxOldGenerationSizeMb: options.heapMb ?? HEAP_MB_DEFAULT,
        maxYoungGenerationSizeMb: YOUNG_HEAP_MB,
      },
    });
    this.#piscina.on('error', (error) => this.#notice(error));
  }

  warm(count: number): void {
    const order: Order = { ...startedBy(this.#options), warm: true };
    for (let thread = 0; thread < Math.min(count, this.#options.threadsMax); thread++) {
      this.#piscina.run(order).catch((error: unknown) => {
        if (!this.#closing.signal.aborted) this.#diagnose('a thread could not be made ready', error);
      });
    }
  }

  async run(spec: TaskSpec, link: TaskLink, signal: AbortSignal): Promise<TaskOutcome> {
    const stop = AbortSignal.any([signal, this.#closing.signal]);
    const attempt = new ThreadAttempt(spec, link, { ...this.#options, piscina: this.#piscina });
    const ended = this.#inTurn(stop, () => attempt.run(stop));
    this.#running.set(attempt, ended);
    try {
      return await ended;
    } finally {
      this.#running.delete(attempt);
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#closing.abort(new DroverError({ kind: 'aborted', by: 'shutdown' }));
    await Promise.all(this.#running.values());
    await this.#piscina.destroy();
  }

  // Not left to piscina: where a thread dies, nobody would start another for what waits in its queue.
  async #inTurn<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    while (this.#busy >= this.#options.threadsMax && !signal.aborted) await this.#aChance(signal);
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
    for (const attempt of this.#running.keys()) attempt.threadLost(wordsOf(error));
  }

  #diagnose(message: string, error: unknown): void {
    this.#options.onDiagnostic(message, { error: wordsOf(error) }, 'warn');
  }
}

type ThreadContext = Pick<PoolOptions, 'launcher' | 'graceMs' | 'silentMs' | 'onDiagnostic'> & {
  readonly piscina: Piscina<Order, TaskOutcome | undefined>;
};

class ThreadAttempt {
  readonly #spec: TaskSpec;
  readonly #surroundings: ThreadContext;
  readonly #unfinished: Unfinished;
  readonly #end = new AbortController(); // ends the thread, if there is one
  #thread: Worker | undefined;
  #hasBegun = false;
  #why: string | undefined;
  #grace: NodeJS.Timeout | undefined;

  constructor(spec: TaskSpec, link: TaskLink, surroundings: ThreadContext) {
    this.#spec = spec;
    this.#surroundings = surroundings;
    this.#unfinished = new Unfinished(spec, link);
  }

  async run(signal: AbortSignal): Promise<TaskOutcome> {
    if (signal.aborted) return this.#unfinished.end(failureOf(signal), signal);
    const { port1, port2 } = new MessageChannel();
    const pulse = new Pulse(this.#surroundings.silentMs ?? SILENT_MS_DEFAULT, (why) => this.#giveUp(why));
    const served = serveTask(port1, this.#unfinished.link, {
      onBegin: (thread) => pulse.begin(this.#begin(thread)),
      onSign: () => pulse.sign(),
    });
    const stop = () => this.#stop(() => served.stop(failureOf(signal)));
    signal.addEventListener('abort', stop, { once: true });
    try {
      const order: Order = {
        ...startedBy(this.#surroundings),
        spec: this.#spec,
        port: port2,
      };
      const outcome = await this.#surroundings.piscina.run(order, { transferList: [port2], signal: this.#end.signal });
      if (outcome === undefined) throw new Error('it ended without an outcome');
      served.close('heard');
      return outcome;
    } catch (error) {
      const message = this.#why ?? wordsOf(error);
      await this.#endThread();
      served.close('heard');
      await endProcesses(this.#unfinished.calls);
      const failure: Failure = signal.aborted ? failureOf(signal) : { kind: 'worker.lost', message };
      this.#tell(message);
      return this.#unfinished.end(failure, signal);
    } finally {
      pulse.stop();
      clearTimeout(this.#grace);
      signal.removeEventListener('abort', stop);
    }
  }

  /** A thread was lost that had no task; while this one's is not heard of, it may have been its. */
  threadLost(why: string): void {
    if (!this.#hasBegun) this.#giveUp(`its thread could not be started: ${why}`);
  }

  #begin(thread: number): Worker | undefined {
    this.#hasBegun = true;
    this.#thread = this.#surroundings.piscina.threads.find(({ threadId }) => threadId === thread);
    return this.#thread;
  }

  #stop(ask: () => void): void {
    // Nothing of it has happened yet.
    if (!this.#hasBegun) return this.#giveUp('it was stopped before it began');
    ask();
    const graceMs = this.#surroundings.graceMs ?? GRACE_MS_DEFAULT;
    this.#grace = setTimeout(() => this.#giveUp(`it did not stop within ${graceMs / 1000} s`), graceMs);
  }

  #giveUp(why: string): void {
    this.#why ??= why;
    this.#end.abort();
  }

  // Until it is gone it may start processes; one that hangs in a system call is not waited for.
  async #endThread(): Promise<void> {
    if (this.#thread === undefined) return;
    const waited = new AbortController();
    const late = delay(EXIT_MS_MAX, undefined, { signal: waited.signal }).catch(() => undefined);
    await Promise.race([this.#thread.terminate(), late]);
    waited.abort();
  }

  #tell(why: string): void {
    const { run, task, attempt, worker } = this.#spec;
    this.#surroundings.onDiagnostic('a worker was ended', { run, task, attempt, worker, why }, 'warn');
  }
}

function startedBy({ launcher }: Pick<PoolOptions, 'launcher'>): Pick<Order, 'launcher'> {
  return launcher === undefined ? {} : { launcher };
}

// More than once, because a process may fork between the look and the blow, and because dying takes a moment.
async function endProcesses(calls: readonly string[]): Promise<void> {
  for (let round = 0; round < KILL_ROUNDS_MAX; round++) {
    const found = calls.map((callId) => endOrphans(callId));
    if (found.every((count) => count === 0)) return;
    await delay(KILL_AGAIN_MS);
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
