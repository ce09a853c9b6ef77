// Event stream of one reader: first the journal's events, then live ones, each exactly once.
//
// A feed fills the queue and the reader empties it. The queue is bounded in bytes:
//   1. Past half of the bound, deltas are dropped and the next event carries `gap`.
//   2. Past the bound, the reader gets `resync` and the stream ends.
//   3. Reconnecting with `Last-Event-ID` delivers the missed events from the journal.
//   4. A reader that names an event which never existed gets `resync` with the number of the last event.

import { type Frame, COMMENT, GREETING, resyncFrame, rewindFrame, streamFramesWithGap } from './frame.ts';

const CHUNK_BYTES = 64 * 1024;
const TOO_SLOW = 'this reader is too slow: come back with the number of the last event';

export type StreamOptions = {
  readonly bytesMax: number;
  /** The history to send before live events. */
  readonly past: AsyncIterable<readonly Frame[]>;
  /** The reader already has the events up to this one. */
  readonly after: number;
  /** The stream ends after the first live event of this type. */
  readonly until?: string;
  /** Called when the reader has left or has read everything. */
  readonly onEnd: () => void;
};

export class EventStream {
  readonly #options: StreamOptions;
  #queue: Frame[] = [];
  #bytes = 0;
  #sent: number;
  #gap = false;
  #isEnding = false; // what is queued is still sent
  #isLost = false;
  #isAhead = false; // the reader named an event that was never told
  #isOver = false;
  #hasSpoken = true; // since the last call
  #wake: (() => void) | undefined;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#sent = options.after;
  }

  push(frame: Frame): void {
    const { bytesMax, until } = this.#options;
    if (this.#isEnding || frame.seq <= this.#sent) return;
    const size = this.#bytes + frame.bytes.length;
    if (frame.isLossy && size > bytesMax / 2) {
      this.#gap = true;
      return;
    }
    if (size > bytesMax) return this.lose();
    this.#bytes = size;
    this.#queue.push(this.#gap ? streamFramesWithGap(frame) : frame);
    this.#gap = false;
    if (frame.type === until) this.#isEnding = true;
    this.#wake?.();
  }

  /** Sends a keep-alive comment to a reader that received nothing since the last call. */
  comment(): void {
    if (!this.#hasSpoken && this.#wake !== undefined) {
      this.#queue.push({ seq: Number.POSITIVE_INFINITY, type: '', isLossy: true, bytes: COMMENT });
      this.#wake();
    }
    this.#hasSpoken = false;
  }

  /** Accepts no more events. The stream ends when the queue is sent. */
  finish(): void {
    this.#isEnding = true;
    this.#wake?.();
  }

  /** Ends the stream with `resync`, since later events would leave a hole. */
  lose(): void {
    this.#isLost = true;
    this.#queue = [];
    this.#bytes = 0;
    this.finish();
  }

  /** Ends the stream with `resync` from `seq`: the reader named an event after the end of the journal. */
  rewind(seq: number): void {
    this.#isAhead = true;
    this.#sent = seq;
    this.lose();
  }

  /** Ends the stream because the reader has left. Idempotent. */
  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#queue = [];
    this.finish();
    this.#options.onEnd();
  }

  /** The response body. It never fails: a slow or lost reader only sees an end. */
  get body(): ReadableStream<Uint8Array> {
    const chunks = this.#chunks();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { done, value } = await chunks.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        },
        cancel: () => this.leave(),
      },
      { highWaterMark: 0 },
    );
  }

  async *#chunks(): AsyncGenerator<Uint8Array> {
    try {
      yield GREETING;
      for await (const frames of this.#options.past) {
        yield* this.#send(frames);
        if (this.#isOver) return;
      }
      while (!this.#isOver) {
        const frames = this.#queue;
        this.#queue = [];
        this.#bytes = 0;
        yield* this.#send(frames);
        if (this.#queue.length > 0) continue;
        if (this.#isLost) yield this.#resync();
        if (this.#isEnding) return;
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = undefined;
      }
    } finally {
      this.leave();
    }
  }

  /** Joins frames into few chunks, since each chunk is a separate write. */
  *#send(frames: readonly Frame[]): Generator<Uint8Array> {
    let chunk: Uint8Array[] = [];
    let bytes = 0;
    for (const frame of frames) {
      if (frame.seq <= this.#sent) continue;
      if (Number.isFinite(frame.seq)) this.#sent = frame.seq;
      chunk.push(frame.bytes);
      bytes += frame.bytes.length;
      if (bytes < CHUNK_BYTES) continue;
      yield joinStreamFrames(chunk);
      chunk = [];
      bytes = 0;
    }
    if (bytes > 0) yield joinStreamFrames(chunk);
    this.#hasSpoken ||= frames.length > 0;
  }

  #resync(): Uint8Array {
    const seq = this.#sent;
    if (!this.#isAhead) return resyncFrame({ type: 'resync', seq, reason: TOO_SLOW });
    const reason = `event ${this.#options.after} was never told, the last one is ${seq}: come back with that number`;
    return rewindFrame({ type: 'resync', seq, reason });
  }
}

// Readers that keep up get the same frames at the same time, so these are joined once for all.
let last: { readonly frames: readonly Uint8Array[]; readonly bytes: Uint8Array } | undefined;

function joinStreamFrames(frames: readonly Uint8Array[]): Uint8Array {
  const [first] = frames;
  if (frames.length === 1 && first !== undefined) return first;
  if (last?.frames.length !== frames.length || last.frames.some((bytes, at) => bytes !== frames[at]))
    last = { frames, bytes: Buffer.concat(frames) };
  return last.bytes;
}
