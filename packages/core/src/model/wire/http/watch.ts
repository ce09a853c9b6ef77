// Stream watch: four timers over one answer (headers, first byte, silence, progress).
//
// Guarantees
//   1. Time in which the reader does not ask for more data does not count: then the reader is slow, not the server.
//   2. Time in which this process was too busy does not count: before a timer fires, pending socket data is read.
//
// The timers are timestamps on the monotonic clock and one timeout, so a chunk does not restart four timeouts.

import type { Failure, StreamTimer } from '@drover/protocol/failures';
import type { StreamTimeouts } from '../../provider.ts';

const TIMEOUT_MS_MAX = 2 ** 31 - 1; // the most that setTimeout accepts
const PAUSED_MS = 50; // shortest check interval while the reader is slow
/** How long a finished answer's connection may take to end by itself, so that it can be reused. */
const SETTLE_MS = 1_000;

type Due = { readonly timer: StreamTimer | 'settled'; readonly at: number; readonly limitMs: number };

export class StreamWatch {
  readonly #timeouts: StreamTimeouts;
  readonly #expire: (failure: Failure | undefined) => void;
  #phase: 'headers' | 'first-byte' | 'body' = 'headers';
  #byteAt = performance.now();
  #progressAt = this.#byteAt;
  #pausedAt: number | undefined;
  #isSettled = false;
  #timer: NodeJS.Timeout | undefined;

  /** Calls `expire` at most once. Without a failure, a finished answer's connection did not close in time. */
  constructor(timeouts: StreamTimeouts, expire: (failure: Failure | undefined) => void) {
    this.#timeouts = timeouts;
    this.#expire = expire;
    this.#arm();
  }

  headersArrived(): void {
    this.#phase = 'first-byte';
    this.#byteAt = this.#progressAt = performance.now();
    this.#arm();
  }

  /** Records bytes that the reader now handles. The timers pause until `resume`. */
  bytesArrived(isProgress: boolean): void {
    const now = performance.now();
    this.#byteAt = this.#pausedAt = now;
    if (isProgress) this.#progressAt = now;
    if (this.#phase === 'body') return;
    this.#phase = 'body';
    this.#arm();
  }

  /** Restarts the timers: the reader waits for more data. */
  resume(): void {
    if (this.#pausedAt === undefined) return;
    const idleMs = performance.now() - this.#pausedAt;
    this.#byteAt += idleMs;
    this.#progressAt += idleMs;
    this.#pausedAt = undefined;
  }

  /** Records whether the latest frame ended the answer. */
  settle(isSettled: boolean): void {
    if (isSettled === this.#isSettled) return;
    this.#isSettled = isSettled;
    this.#arm();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const leftMs = this.#due().at - (this.#pausedAt ?? performance.now());
    const inMs = Math.max(this.#pausedAt === undefined ? 1 : PAUSED_MS, Math.ceil(leftMs));
    this.#timer = setTimeout(() => this.#check(), Math.min(TIMEOUT_MS_MAX, inMs));
  }

  #due(): Due {
    const { headersMs, firstByteMs, silenceMs, progressMs } = this.#timeouts;
    if (this.#phase === 'headers') return { timer: 'headers', at: this.#byteAt + headersMs, limitMs: headersMs };
    if (this.#isSettled) return { timer: 'settled', at: this.#byteAt + SETTLE_MS, limitMs: SETTLE_MS };
    const bytes: Due =
      this.#phase === 'first-byte'
        ? { timer: 'first-byte', at: this.#byteAt + firstByteMs, limitMs: firstByteMs }
        : { timer: 'silence', at: this.#byteAt + silenceMs, limitMs: silenceMs };
    const progress: Due = { timer: 'progress', at: this.#progressAt + progressMs, limitMs: progressMs };
    return progress.at < bytes.at ? progress : bytes;
  }

  #isOver(): boolean {
    return this.#pausedAt === undefined && performance.now() >= this.#due().at;
  }

  #check(): void {
    if (!this.#isOver()) return this.#arm();
    // Immediates run after pending socket data is read.
    setImmediate(() => {
      if (this.#timer === undefined) return;
      if (!this.#isOver()) return this.#arm();
      const { timer, limitMs } = this.#due();
      this.close();
      this.#expire(timer === 'settled' ? undefined : { kind: 'provider.stalled', timer, afterMs: limitMs });
    });
  }
}
