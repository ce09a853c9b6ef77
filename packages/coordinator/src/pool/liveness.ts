// Whether a thread still works, told by the signs of life it gives every second.
//
// One that loops gives none, and uses the processor. So does one that is loading its code on a machine
// with too much to do, though it uses little: a thread is taken for lost once it has been silent for long
// and busy for a good part of that, or silent for very long. What is counted are looks, not seconds: where the
// thread that looks was busy itself, or the whole machine asleep, it has seen nothing.

import type { Worker } from 'node:worker_threads';

const LOOKS_PER_SILENCE = 8;
const BUSY_PART = 1 / 4;
// Silent without being busy: it waits for something that never comes, or the machine is overloaded.
const DEAF_LOOKS = 4 * LOOKS_PER_SILENCE;
// From source, on a busy machine, a thread takes seconds to load what it needs.
const START_LOOKS = 8 * LOOKS_PER_SILENCE;

export class Pulse {
  readonly #silentMs: number;
  readonly #onLost: (why: string) => void;
  readonly #timer: NodeJS.Timeout;
  #thread: Worker | undefined;
  #hasBegun = false;
  #looks = 0; // since the last sign
  #busyBefore: Promise<number> | undefined;

  constructor(silentMs: number, onLost: (why: string) => void) {
    this.#silentMs = silentMs;
    this.#onLost = onLost;
    this.#timer = setInterval(() => void this.#look(), silentMs / LOOKS_PER_SILENCE);
  }

  /** The thread has the task; undefined where it can't be told which it is. */
  begin(thread: Worker | undefined): void {
    this.#hasBegun = true;
    this.#thread = thread;
  }

  sign(): void {
    this.#looks = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    this.#looks += 1;
    const silentMs = (this.#looks * this.#silentMs) / LOOKS_PER_SILENCE;
    const why = `it gave no sign of life for ${Math.round(silentMs / 100) / 10} s`;
    if (!this.#hasBegun) {
      if (this.#looks >= START_LOOKS) this.#onLost(why);
      return;
    }
    if (this.#looks >= DEAF_LOOKS) return this.#onLost(why);
    if (this.#looks === 1) this.#busyBefore = busyMs(this.#thread);
    if (this.#looks < LOOKS_PER_SILENCE) return;
    const spentMs = (await busyMs(this.#thread)) - ((await this.#busyBefore) ?? 0);
    // By now it may have given one.
    if (this.#looks >= LOOKS_PER_SILENCE && spentMs >= this.#silentMs * BUSY_PART) this.#onLost(why);
  }
}

/** Also of a thread that loops; 0 where it is gone, which is noticed otherwise. */
async function busyMs(thread: Worker | undefined): Promise<number> {
  // Node has had it since 24.6; without it only a very long silence counts.
  const used = await thread?.cpuUsage?.().catch(() => undefined);
  return used === undefined ? 0 : (used.user + used.system) / 1000;
}
