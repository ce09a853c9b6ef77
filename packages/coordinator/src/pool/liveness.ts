// Liveness of a thread, told by the sign that it gives every second.
//
// A looping thread gives no sign and uses the processor. A thread that loads its code on a busy machine gives none
// either, though it uses little. So a thread counts as lost once it was silent for long and busy for a good part of
// that, or silent for very long. The unit is looks, not seconds: while the main thread was busy itself, or the whole
// machine asleep, it has seen nothing.

import type { Worker } from 'node:worker_threads';

const LOOKS_PER_SILENCE = 8;
const BUSY_PART = 1 / 4;
// Silent without being busy: it waits for something that never comes, or the machine is overloaded.
const DEAF_LOOKS = 4 * LOOKS_PER_SILENCE;
// From source, on a busy machine, a thread takes seconds to load what it needs.
const START_LOOKS = 8 * LOOKS_PER_SILENCE;
// Signs come every second, so a thread that has given none for longer may be stuck.
const FRESH_LOOKS = 2;

export type Watched = {
  readonly silentMs: number;
  readonly onLost: (why: string) => void;
};

/** Watches for the start of a task: it has been given to a thread, or waits for one that starts. */
export function awaitThreadStart({ silentMs, onLost }: Watched): Disposable {
  let looks = 0;
  const timer = setInterval(() => {
    looks += 1;
    if (looks >= START_LOOKS) onLost(threadSilenceWords(looks, silentMs));
  }, silentMs / LOOKS_PER_SILENCE);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Watches a thread that has tasks. */
export class Pulse {
  readonly #watched: Watched;
  readonly #thread: Worker | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looks = 0; // since the last sign
  #busyBefore: Promise<number> | undefined;

  constructor(thread: Worker | undefined, watched: Watched) {
    this.#thread = thread;
    this.#watched = watched;
  }

  /** The thread has given a sign of life a moment ago. */
  get isFresh(): boolean {
    return this.#timer !== undefined && this.#looks <= FRESH_LOOKS;
  }

  /** The thread has begun a task. Before that it may be loading its code, which takes as long as it takes. */
  start(): void {
    this.#looks = 0;
    this.#timer ??= setInterval(() => void this.#look(), this.#watched.silentMs / LOOKS_PER_SILENCE);
  }

  sign(): void {
    this.#looks = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #look(): Promise<void> {
    const { silentMs, onLost } = this.#watched;
    this.#looks += 1;
    const why = threadSilenceWords(this.#looks, silentMs);
    if (this.#looks >= DEAF_LOOKS) return onLost(why);
    if (this.#looks === 1) this.#busyBefore = threadBusyMs(this.#thread);
    if (this.#looks < LOOKS_PER_SILENCE) return;
    const spentMs = (await threadBusyMs(this.#thread)) - ((await this.#busyBefore) ?? 0);
    // By now it may have given one.
    if (this.#looks >= LOOKS_PER_SILENCE && spentMs >= silentMs * BUSY_PART) onLost(why);
  }
}

function threadSilenceWords(looks: number, silentMs: number): string {
  return `it gave no sign of life for ${Math.round((looks * silentMs) / LOOKS_PER_SILENCE / 100) / 10} s`;
}

/** Also of a thread that loops; 0 where it is gone, which is noticed otherwise. */
async function threadBusyMs(thread: Worker | undefined): Promise<number> {
  // Node has had it since 24.6; without it only a very long silence counts.
  const used = await thread?.cpuUsage?.().catch(() => undefined);
  return used === undefined ? 0 : (used.user + used.system) / 1000;
}
