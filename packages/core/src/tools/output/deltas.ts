// Live output for whoever watches: the first of it at once, then a few times a second, and never
// more at a time than someone could read. Deltas may be lost; the complete output follows them.

import { setTimeout as delay } from 'node:timers/promises';
import { orphanedBytes, textOf, unfinishedBytes } from './bytes.ts';

const DELTA_BYTES_MAX = 8_000;
const DELTA_INTERVAL_MS = 100;

export class Deltas {
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #changed = Promise.withResolvers<void>();
  readonly #closed = new AbortController();

  push(chunk: Buffer): void {
    // A copy of what can still be shown: the chunk itself is not ours for long.
    const recent = Buffer.from(chunk.subarray(-DELTA_BYTES_MAX));
    this.#waiting.push(recent);
    this.#waitingBytes += recent.length;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (this.#waitingBytes - first.length < DELTA_BYTES_MAX) break;
      this.#waiting.shift();
      this.#waitingBytes -= first.length;
    }
    this.#changed.resolve();
  }

  close(): void {
    this.#closed.abort();
    this.#changed.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      await this.#changed.promise;
      this.#changed = Promise.withResolvers<void>();
      const delta = this.#take();
      if (delta !== '') yield delta;
      if (this.#closed.signal.aborted && this.#waitingBytes === 0) return;
      await pause(this.#closed.signal);
      if (this.#closed.signal.aborted) this.#changed.resolve();
    }
  }

  #take(): string {
    const bytes = Buffer.concat(this.#waiting);
    const recent = bytes.subarray(-DELTA_BYTES_MAX);
    const whole = recent.length === bytes.length ? recent : recent.subarray(orphanedBytes(recent));
    const unfinished = this.#closed.signal.aborted ? 0 : unfinishedBytes(whole);
    this.#waiting = unfinished === 0 ? [] : [whole.subarray(-unfinished)];
    this.#waitingBytes = unfinished;
    return textOf(whole.subarray(0, whole.length - unfinished));
  }
}

async function pause(closed: AbortSignal): Promise<void> {
  try {
    await delay(DELTA_INTERVAL_MS, undefined, { signal: closed });
  } catch (error) {
    if (!closed.aborted) throw error;
  }
}
