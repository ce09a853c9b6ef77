// One attempt in one thread: its order, its wire, and what becomes of it where the thread is lost.
//
// HOW IT STOPS
//   It is asked, over its wire, and has a grace to end its processes and tell its end. Then its thread is
//   ended, which runs no `finally`, so what its calls had started is ended from here.

import type { Diagnose } from '@drover/core/diagnosis';
import { setTimeout as delay } from 'node:timers/promises';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import type { Failure } from '@drover/protocol/failures';
import type { TaskLink } from '@drover/core/task/link';
import type { Displaced, TaskSpec } from '@drover/core/task/task';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { Order } from '@drover/core/task/order';
import { type Served, serveTaskWire } from '@drover/core/task/wire';
import type { LauncherAddress } from '@drover/core/tools/process/launcher';
import { handled } from '@drover/core/promises';
import { endOrphanProcesses } from '@drover/core/tools/process/tree';
import { awaitThreadStart } from './liveness.ts';
import { Unfinished } from './loss.ts';
import type { Loss, Tenant, Thread, Threads } from './threads.ts';

const KILL_ROUNDS_MAX = 50;
const KILL_AGAIN_MS = 10;
/** How often a thread may fail to start before the attempt gives up. */
const STARTS_MAX = 3;

export type ThreadContext = {
  readonly launcher?: LauncherAddress;
  readonly graceMs: number;
  readonly silentMs: number;
  readonly onDiagnostic: Diagnose;
  readonly threads: Threads;
};

export class ThreadAttempt {
  readonly #spec: TaskSpec;
  readonly #context: ThreadContext;
  readonly #unfinished: Unfinished;
  readonly #tenant: Tenant = {
    onPlaced: (thread) => this.#enter(thread),
    hear: () => this.#served?.hear(),
    hasBegun: () => this.#hasBegun,
    hasFallen: () => this.#hasFallen,
  };
  readonly #dropped = Promise.withResolvers<typeof DROPPED>();
  #end = new AbortController(); // ends the thread, if there is one
  #served: Served | undefined;
  #thread: Thread | undefined;
  #hasBegun = false;
  #hasFallen = false;
  #why: string | undefined;
  #grace: NodeJS.Timeout | undefined;

  constructor(spec: TaskSpec, link: TaskLink, context: ThreadContext) {
    this.#spec = spec;
    this.#context = context;
    this.#unfinished = new Unfinished(spec, link);
  }

  async run(signal: AbortSignal): Promise<TaskOutcome | Displaced> {
    for (let start = 1; ; start++) {
      if (signal.aborted) return this.#unfinished.end(turnFailureOfSignal(signal), signal);
      const ended = await this.#start(signal);
      if (ended !== NOT_STARTED) return ended;
      if (start >= STARTS_MAX || signal.aborted) return this.#lost(this.#why ?? 'it could not be started', signal);
      this.#thread = undefined;
      this.#why = undefined;
      this.#end = new AbortController();
    }
  }

  /** A thread was lost that had no attempt; while this one has none, it may have been its. */
  threadLost(why: string): void {
    if (this.#thread === undefined) this.#giveUp(`its thread could not be started: ${why}`);
  }

  async #start(signal: AbortSignal): Promise<TaskOutcome | Displaced | typeof NOT_STARTED> {
    const { silentMs } = this.#context;
    const { port1, port2 } = new MessageChannel();
    using starting = awaitThreadStart({ silentMs, onLost: (why) => this.#giveUp(why) });
    const served = serveTaskWire(port1, this.#unfinished.link, {
      onBegin: () => {
        this.#hasBegun = true;
        this.#thread?.pulse.start();
        starting[Symbol.dispose]();
      },
      onSign: () => this.#thread?.pulse.sign(),
      onFell: () => void (this.#hasFallen = true),
    });
    this.#served = served;
    const stop = () => this.#stop(() => served.stop(turnFailureOfSignal(signal)));
    signal.addEventListener('abort', stop, { once: true });
    try {
      const ordered = this.#order(port2);
      // If the attempt was dropped, its result is ignored.
      handled(ordered);
      const outcome = await Promise.race([ordered, this.#dropped.promise]);
      if (outcome === undefined) throw new Error('it ended without an outcome');
      served.close(outcome === DROPPED ? 'ignored' : 'heard');
      return outcome === DROPPED ? await this.#unfinished.end(turnFailureOfSignal(signal), signal) : outcome;
    } catch (error) {
      return await this.#afterLoss(served, error, signal);
    } finally {
      clearTimeout(this.#grace);
      signal.removeEventListener('abort', stop);
    }
  }

  async #order(port: MessagePort): Promise<TaskOutcome | undefined> {
    const { threads, launcher } = this.#context;
    const order: Order = { ...(launcher !== undefined && { launcher }), spec: this.#spec, port };
    try {
      return await threads.run(order, this.#tenant, this.#end.signal);
    } catch (error) {
      // Before it leaves, so that the thread's loss knows who was in it.
      this.#thread?.failed(this.#tenant, this.#why ?? wordsOfThreadError(error));
      throw error;
    } finally {
      this.#thread?.leave(this.#tenant);
    }
  }

  async #afterLoss(served: Served, error: unknown, signal: AbortSignal) {
    const loss = this.#thread?.loss;
    await loss?.gone;
    served.close('heard');
    this.#why ??= loss?.why ?? wordsOfThreadError(error);
    if (signal.aborted) return this.#ended(signal);
    if (loss?.culprit === this.#tenant) return this.#ended(signal);
    if (loss === undefined || !this.#hasBegun) return NOT_STARTED;
    await endProcessesOfThread(this.#unfinished.calls);
    return this.#displaced(loss);
  }

  async #ended(signal: AbortSignal): Promise<TaskOutcome> {
    await endProcessesOfThread(this.#unfinished.calls);
    return this.#lost(this.#why ?? '', signal);
  }

  #lost(why: string, signal: AbortSignal): Promise<TaskOutcome> {
    const failure: Failure = signal.aborted ? turnFailureOfSignal(signal) : { kind: 'worker.lost', message: why };
    this.#tell('a worker was ended', why);
    return this.#unfinished.end(failure, signal);
  }

  #displaced({ why, culprit }: Loss): Displaced {
    this.#tell('a worker lost its thread and is moved', why);
    return { status: 'displaced', why, alone: culprit === undefined };
  }

  #enter(thread: Thread): void {
    this.#thread = thread;
    thread.enter(this.#tenant, this.#end);
  }

  #stop(ask: () => void): void {
    if (this.#thread === undefined) return this.#giveUp('it was stopped before it began');
    // It has an order in a thread with others. Without its wire it ends there before it has done anything.
    if (!this.#hasBegun) return this.#dropped.resolve(DROPPED);
    ask();
    const { graceMs } = this.#context;
    this.#grace = setTimeout(() => this.#giveUp(`it did not stop within ${graceMs / 1000} s`), graceMs);
  }

  /** Ends the thread. Where it has been silent, another attempt in it may be the reason. */
  #giveUp(why: string): void {
    this.#why ??= why;
    if (this.#thread === undefined) return this.#end.abort();
    this.#thread.end(why, this.#thread.pulse.isFresh ? this.#tenant : undefined);
  }

  #tell(message: string, why: string): void {
    const { run, task, attempt, worker } = this.#spec;
    this.#context.onDiagnostic(message, { run, task, attempt, worker, why }, 'warn');
  }
}

const NOT_STARTED = Symbol('no thread has begun it');
const DROPPED = Symbol('it was stopped before its thread began it');

// More than once, because a process may fork between the look and the blow, and because dying takes a moment.
async function endProcessesOfThread(calls: readonly string[]): Promise<void> {
  for (let round = 0; round < KILL_ROUNDS_MAX; round++) {
    const found = calls.map((callId) => endOrphanProcesses(callId));
    if (found.every((count) => count === 0)) return;
    await delay(KILL_AGAIN_MS);
  }
}

export function wordsOfThreadError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
