// One reader's stream: what is in the journal first, then what happens, each event once.
//
// It is filled by its feed and emptied as fast as the reader takes it. What happens meanwhile waits in a
// queue, bounded in bytes: past half of that bound deltas are left out, and the next event says so with
// `gap`; past the bound the reader is told `resync` and the stream ends. Whoever comes back with the number
// of the last event gets what it missed from the journal. A reader that names an event which the journal never had is
// told `resync`, too, with the number of the last event there is.

import { type Frame, COMMENT, GREETING, resyncFrame, rewindFrame, withGap } from './frame.ts';

const CHUNK_BYTES = 64 * 1024;
const TOO_SLOW = 'this reader is too slow: come back with the number of the last event';

export type StreamOptions = {
  readonly bytesMax: number;
  /** What there is to tell before anything that happens now. */
  readonly past: AsyncIterable<readonly Frame[]>;
  /** Events up to this one are known already. */
  readonly after: number;
  /** The stream ends behind the first event of this type that happens. */
  readonly until?: string;
  /** Nobody reads any more, or all is read. */
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
  #hasSpoken = true; // since the last time it was asked
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
    this.#queue.push(this.#gap ? withGap(frame) : frame);
    this.#gap = false;
    if (frame.type === until) this.#isEnding = true;
    this.#wake?.();
  }

  /** Says that the server is there, to a reader that has heard nothing since the last time. */
  comment(): void {
    if (!this.#hasSpoken && this.#wake !== undefined) {
      this.#queue.push({ seq: Number.POSITIVE_INFINITY, type: '', isLossy: true, bytes: COMMENT });
      this.#wake();
    }
    this.#hasSpoken = false;
  }

  /** No more events: it ends when what is queued is sent. */
  finish(): void {
    this.#isEnding = true;
    this.#wake?.();
  }

  /** What comes next is not all there is: the reader has to come back. */
  lose(): void {
    this.#isLost = true;
    this.#queue = [];
    this.#bytes = 0;
    this.finish();
  }

  /** The journal ends with the event `seq`, before the one that the reader named: it has to come back from there. */
  rewind(seq: number): void {
    this.#isAhead = true;
    this.#sent = seq;
    this.lose();
  }

  /** Nobody reads it any more. */
  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#queue = [];
    this.finish();
    this.#options.onEnd();
  }

  /** The body of the answer. It never fails: whoever goes away, or is too slow, has simply an end. */
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

  /** In few chunks rather than in many: each is a write of its own. */
  *#send(frames: readonly Frame[]): Generator<Uint8Array> {
    let chunk: Uint8Array[] = [];
    let bytes = 0;
    for (const frame of frames) {
      if (frame.seq <= this.#sent) continue;
      if (Number.isFinite(frame.seq)) this.#sent = frame.seq;
      chunk.push(frame.bytes);
      bytes += frame.bytes.length;
      if (bytes < CHUNK_BYTES) continue;
      yield joined(chunk);
      chunk = [];
      bytes = 0;
    }
    if (bytes > 0) yield joined(chunk);
    this.#hasSpoken ||= frames.length > 0;
  }

  #resync(): Uint8Array {
    const seq = this.#sent;
    if (!this.#isAhead) return resyncFrame({ type: 'resync', seq, reason: TOO_SLOW });
    const reason = `event ${this.#options.after} was never told, the last one is ${seq}: come back with that number`;
    return rewindFrame({ type: 'resync', seq, reason });
  }
}

// Readers that keep up are sent the same frames in the same go: they are joined once for all of them.
let last: { readonly frames: readonly Uint8Array[]; readonly bytes: Uint8Array } | undefined;

function joined(frames: readonly Uint8Array[]): Uint8Array {
  const [first] = frames;
  if (frames.length === 1 && first !== undefined) return first;
  if (last?.frames.length !== frames.length || last.frames.some((bytes, at) => bytes !== frames[at]))
    last = { frames, bytes: Buffer.concat(frames) };
  return last.bytes;
}
