// The threads of a pool, each with several attempts in it that take turns.
//
// Guarantees
//   1. An attempt goes to the thread with the fewest attempts, and to none that is being ended.
//   2. A thread that is lost is lost once: all its attempts are told the same reason and the same culprit, or that
//      the culprit is unknown.
//
// piscina's own balancer gives a task that can be aborted a thread for itself, so two such tasks never take turns. And
// aborting a task ends its thread, with all others in it. The balancer here lets them share; `end` uses the abort.

import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { Order, SignOfLife } from '@drover/core/task/order';
import { Piscina } from 'piscina';
import { Pulse } from './liveness.ts';

// Small, because every thread has one: what lives short is collected more often instead.
const YOUNG_HEAP_MB = 4;
const EXIT_MS_MAX = 1_000;

export type ThreadsOptions = {
  readonly entry: URL | string;
  readonly threadsMax: number;
  readonly attemptsMax: number; // in one thread
  readonly heapMb: number; // of one thread
  readonly silentMs: number;
  /** A thread was lost that had no attempt. */
  readonly onIdleLost: (error: unknown) => void;
};

/** An attempt as its thread sees it. */
export type Tenant = {
  /** Called before the thread gets the order. */
  readonly onPlaced: (thread: Thread) => void;
  /** Handles everything that the attempt has sent. */
  readonly hear: () => void;
  /** The thread has begun its work. Valid after `hear`. */
  readonly hasBegun: () => boolean;
  /** The thread has told that this attempt's code ends it. Valid after `hear`. */
  readonly hasFallen: () => boolean;
};

export type Loss = {
  readonly why: string;
  /** The attempt that ended the thread; undefined if it is unknown. */
  readonly culprit: Tenant | undefined;
  /** Resolves when the thread is gone, or hangs in a system call and will never run code again. */
  readonly gone: Promise<void>;
};

type Placed = { readonly tenant: Tenant; readonly threads: Threads };

export class Threads {
  readonly #options: ThreadsOptions;
  readonly #piscina: Piscina<Order, TaskOutcome | undefined>;
  readonly #known = new Map<number, Thread>();

  constructor(options: ThreadsOptions) {
    this.#options = options;
    const { entry, threadsMax, attemptsMax, heapMb } = options;
    this.#piscina = new Piscina({
      filename: String(entry),
      name: 'work',
      minThreads: 0,
      maxThreads: threadsMax,
      concurrentTasksPerWorker: attemptsMax,
      idleTimeout: Infinity,
      // The default parks an idle thread in Atomics.wait, which freezes any timer left open.
      atomics: 'disabled',
      recordTiming: false,
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_HEAP_MB },
      loadBalancer: (task, threads) => this.#choose(task as object, threads),
    });
    this.#piscina.on('error', (error) => options.onIdleLost(error));
    this.#piscina.on('message', ({ sign }: SignOfLife) => this.#known.get(sign)?.pulse.sign());
  }

  warm(order: Order): Promise<unknown> {
    return this.#piscina.run(order);
  }

  /** Rejects if the attempt throws, its thread is lost, or `end` aborts. An abort ends the whole thread. */
  run(order: Order, tenant: Tenant, end: AbortSignal): Promise<TaskOutcome | undefined> {
    const marked = Object.assign(order, { [Piscina.queueOptionsSymbol]: { tenant, threads: this } satisfies Placed });
    return this.#piscina.run(marked, { ...('port' in order && { transferList: [order.port] }), signal: end });
  }

  async close(): Promise<void> {
    await this.#piscina.destroy();
    for (const { pulse } of this.#known.values()) pulse.stop();
  }

  #choose<Each extends { readonly id: number }>(task: object, candidates: readonly Each[]): Each | null {
    const placed: unknown = Reflect.get(task, Piscina.queueOptionsSymbol);
    const room = candidates
      .map((candidate) => ({ candidate, thread: this.#thread(candidate.id) }))
      .filter(({ thread }) => thread.loss === undefined && thread.tenants.size < this.#options.attemptsMax)
      .toSorted((a, b) => a.thread.tenants.size - b.thread.tenants.size);
    const [best] = room;
    if (best === undefined) return null;
    if (isPlacedInThread(placed)) placed.tenant.onPlaced(best.thread);
    return best.candidate;
  }

  #thread(id: number): Thread {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const worker = this.#piscina.threads.find(({ threadId }) => threadId === id);
    const thread = new Thread(worker, {
      silentMs: this.#options.silentMs,
      isAlive: () => worker !== undefined && this.#piscina.threads.includes(worker),
      onGone: () => this.#known.delete(id),
    });
    this.#known.set(id, thread);
    return thread;
  }
}

function isPlacedInThread(value: unknown): value is Placed {
  return typeof value === 'object' && value !== null && 'tenant' in value;
}

type ThreadOptions = {
  readonly silentMs: number;
  /** piscina still gives tasks to it. */
  readonly isAlive: () => boolean;
  readonly onGone: () => void;
};

export class Thread {
  readonly pulse: Pulse;
  readonly #worker: Worker | undefined;
  readonly #options: ThreadOptions;
  readonly #tenants = new Map<Tenant, AbortController>(); // with what ends their task, and so the thread
  #loss: Loss | undefined;

  constructor(worker: Worker | undefined, options: ThreadOptions) {
    this.#worker = worker;
    this.#options = options;
    const onLost = (why: string) => this.end(why, undefined);
    this.pulse = new Pulse(worker, { silentMs: options.silentMs, onLost });
  }

  get tenants(): ReadonlyMap<Tenant, AbortController> {
    return this.#tenants;
  }

  get loss(): Loss | undefined {
    return this.#loss;
  }

  enter(tenant: Tenant, end: AbortController): void {
    this.#tenants.set(tenant, end);
  }

  leave(tenant: Tenant): void {
    this.#tenants.delete(tenant);
    if (this.#tenants.size === 0) this.pulse.stop();
  }

  /** The task of this tenant was rejected: the thread is gone, or the task threw and takes it along. */
  failed(tenant: Tenant, why: string): Loss {
    return this.end(why, this.#options.isAlive() ? tenant : undefined);
  }

  /** Ends the thread. Without a culprit, the tenants that told the reason, or the only one at work, are found out. */
  end(why: string, culprit: Tenant | undefined): Loss {
    if (this.#loss !== undefined) return this.#loss;
    this.pulse.stop();
    for (const tenant of this.#tenants.keys()) tenant.hear();
    this.#loss = { why, culprit: culprit ?? this.#culprit(), gone: this.#gone() };
    for (const end of this.#tenants.values()) end.abort();
    this.#options.onGone();
    return this.#loss;
  }

  #culprit(): Tenant | undefined {
    const atWork = [...this.#tenants.keys()].filter((tenant) => tenant.hasBegun());
    return atWork.find((tenant) => tenant.hasFallen()) ?? (atWork.length === 1 ? atWork[0] : undefined);
  }

  // Until it is gone it may start processes; one that hangs in a system call is not waited for.
  async #gone(): Promise<void> {
    const waited = new AbortController();
    const late = delay(EXIT_MS_MAX, undefined, { signal: waited.signal }).catch(() => undefined);
    await Promise.race([this.#worker?.terminate(), late]);
    waited.abort();
  }
}
