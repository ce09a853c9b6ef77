// Live output for views: the first delta at once, then at most ten a second, each of bounded size.
// Deltas may be lost; the complete output follows them.

import { setTimeout as delay } from 'node:timers/promises';
import { orphanedOutputBytes, toolOutputText, unfinishedOutputBytes } from './bytes.ts';
import { Ring } from './ring.ts';

const DELTA_BYTES_MAX = 8_000;
const DELTA_INTERVAL_MS = 100;

export class Deltas {
  readonly #waiting = new Ring(DELTA_BYTES_MAX);
  #changed = Promise.withResolvers<void>();
  readonly #closed = new AbortController();

  push(chunk: Buffer): void {
    this.#waiting.add(chunk);
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
      if (this.#closed.signal.aborted && this.#waiting.length === 0) return;
      await pauseOutputDeltas(this.#closed.signal);
      if (this.#closed.signal.aborted) this.#changed.resolve();
    }
  }

  #take(): string {
    const recent = this.#waiting.contents();
    const whole = this.#waiting.hasLost ? recent.subarray(orphanedOutputBytes(recent)) : recent;
    const unfinished = this.#closed.signal.aborted ? 0 : unfinishedOutputBytes(whole);
    this.#waiting.empty();
    if (unfinished > 0) this.#waiting.add(whole.subarray(-unfinished));
    return toolOutputText(whole.subarray(0, whole.length - unfinished));
  }
}

async function pauseOutputDeltas(closed: AbortSignal): Promise<void> {
  try {
    await delay(DELTA_INTERVAL_MS, undefined, { signal: closed });
  } catch (error) {
    if (!closed.aborted) throw error;
  }
}
