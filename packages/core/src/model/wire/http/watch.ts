// The four timers over one answer: headers, first byte, silence, progress.
//
// They are stamps and one timeout, not four timeouts set anew with each chunk, and they run on the
// monotonic clock. Time in which nobody asked for more does not count: it is the reader that is slow
// then, not the server. Nor does time in which this process was too busy to look: before a timer is
// said to have run out, whatever is waiting in the socket is read first.

import type { Failure, StreamTimer } from '@drover/protocol/failures';
import type { StreamTimeouts } from '../../provider.ts';

const TIMEOUT_MS_MAX = 2 ** 31 - 1; // what setTimeout takes
const PAUSED_MS = 50; // how often at most to look while the reader holds things up
/** A finished answer's connection is given this long to end by itself, so that it can be used again. */
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

  /** `expire` is called once at most; without a failure it means that a finished answer's connection lingers. */
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

  /** Bytes arrived, and are now being dealt with: the clocks stand still until `resume`. */
  bytesArrived(isProgress: boolean): void {
    const now = performance.now();
    this.#byteAt = this.#pausedAt = now;
    if (isProgress) this.#progressAt = now;
    if (this.#phase === 'body') return;
    this.#phase = 'body';
    this.#arm();
  }

  /** More is being waited for. */
  resume(): void {
    if (this.#pausedAt === undefined) return;
    const idleMs = performance.now() - this.#pausedAt;
    this.#byteAt += idleMs;
    this.#progressAt += idleMs;
    this.#pausedAt = undefined;
  }

  /** Whether the last thing that arrived was the end of the answer. */
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
    // Immediates run after the sockets have been read.
    setImmediate(() => {
      if (this.#timer === undefined) return;
      if (!this.#isOver()) return this.#arm();
      const { timer, limitMs } = this.#due();
      this.close();
      this.#expire(timer === 'settled' ? undefined : { kind: 'provider.stalled', timer, afterMs: limitMs });
    });
  }
}
