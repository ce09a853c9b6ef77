// Decoder for server-sent events: bytes in, frames out.
//
// Guarantees
//   1. It follows the standard: LF, CRLF or CR line ends, an optional byte order mark, multi-line `data`, comments,
//      and unknown fields that are ignored. One exception: an event without its closing blank line still counts,
//      because servers forget it. A truncated event shows in its data.
//   2. The frames do not depend on how the bytes are split. Bytes are decoded only up to the last line end, so no
//      character is split.
//   3. Decoding takes linear time. The rest of the bytes waits in one buffer that doubles its size.
//   4. Memory is bounded: a line or an event over 16 MB fails.

import { DroverError } from '../../../errors.ts';

export type SseFrame = {
  readonly event: string; // empty if the server named none
  readonly data: string;
};

/** Frames in the batches in which they arrived: awaiting a batch is much cheaper than awaiting each frame. */
export type Frames = AsyncIterable<readonly SseFrame[]>;

const EVENT_SIZE_MAX = 16 * 1024 * 1024;
const TAIL_SIZE_MIN = 4 * 1024;
const LF = 10;
const CR = 13;
const SPACE = 32;
const COLON = 58;
const BYTE_ORDER_MARK = 0xfeff;

export class SseDecoder {
  #tail = Buffer.allocUnsafe(TAIL_SIZE_MIN); // bytes after the last line end
  #tailSize = 0;
  #started = false;
  #afterCr = false; // the last text ended with CR, so an LF that follows belongs to it
  #event = '';
  #data = '';
  #hasData = false;
  #frames: SseFrame[] = [];

  push(bytes: Uint8Array): readonly SseFrame[] {
    const cut = lastSseLineEnd(bytes) + 1;
    if (cut > 0) this.#read(this.#decode(bytes.subarray(0, cut)));
    this.#keep(cut === 0 ? bytes : bytes.subarray(cut));
    return this.#takeFrames();
  }

  /** Returns the remaining frame if the stream ended without a blank line. */
  end(): readonly SseFrame[] {
    if (this.#tailSize > 0) this.#read(`${this.#decode(NO_BYTES)}\n`);
    this.#dispatch();
    return this.#takeFrames();
  }

  /** Decodes the buffered tail together with these bytes. */
  #decode(bytes: Uint8Array): string {
    if (this.#tailSize === 0) return sseBytesAsBuffer(bytes).toString('utf8');
    this.#keep(bytes);
    const text = this.#tail.toString('utf8', 0, this.#tailSize);
    this.#tailSize = 0;
    return text;
  }

  #keep(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const size = this.#tailSize + bytes.length;
    if (size > EVENT_SIZE_MAX) throw sseFrameTooLarge('a line');
    if (size > this.#tail.length) {
      const larger = Buffer.allocUnsafe(Math.max(size, 2 * this.#tail.length));
      this.#tail.copy(larger, 0, 0, this.#tailSize);
      this.#tail = larger;
    }
    this.#tail.set(bytes, this.#tailSize);
    this.#tailSize = size;
  }

  /** Reads whole lines. */
  #read(decoded: string): void {
    const text = this.#unified(decoded);
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      if (end === start) this.#dispatch();
      else this.#line(text, start, end);
      start = end + 1;
    }
  }

  /** Normalizes line ends to LF, and drops a byte order mark. */
  #unified(text: string): string {
    let from = 0;
    if (!this.#started) {
      this.#started = true;
      if (text.charCodeAt(0) === BYTE_ORDER_MARK) from = 1;
    }
    if (this.#afterCr && text.charCodeAt(0) === LF) from = 1;
    this.#afterCr = text.charCodeAt(text.length - 1) === CR;
    const rest = from === 0 ? text : text.slice(from);
    return rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest;
  }

  #line(text: string, start: number, end: number): void {
    if (text.startsWith('data', start)) {
      const value = sseFieldValue(text, start + 4, end);
      if (value === undefined) return;
      if (this.#data.length + value.length > EVENT_SIZE_MAX) throw sseFrameTooLarge('an event');
      this.#data = this.#hasData ? `${this.#data}\n${value}` : value;
      this.#hasData = true;
    } else if (text.startsWith('event', start)) {
      this.#event = sseFieldValue(text, start + 5, end) ?? this.#event;
    }
  }

  #dispatch(): void {
    if (this.#hasData) this.#frames.push({ event: this.#event, data: this.#data });
    this.#event = '';
    this.#data = '';
    this.#hasData = false;
  }

  #takeFrames(): readonly SseFrame[] {
    if (this.#frames.length === 0) return NONE;
    const frames = this.#frames;
    this.#frames = [];
    return frames;
  }
}

const NONE: readonly SseFrame[] = [];
const NO_BYTES = new Uint8Array();

function sseBytesAsBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Index of the last line end in a chunk, or -1. Searches for CR only after the last LF, because CRs are rare. */
function lastSseLineEnd(bytes: Uint8Array): number {
  const lf = bytes.lastIndexOf(LF);
  const cr = bytes.subarray(lf + 1).lastIndexOf(CR);
  return cr === -1 ? lf : lf + 1 + cr;
}

/** The value after a field name; undefined if the name is longer than expected. */
function sseFieldValue(text: string, at: number, end: number): string | undefined {
  if (at === end) return '';
  if (text.charCodeAt(at) !== COLON) return undefined;
  const from = text.charCodeAt(at + 1) === SPACE ? at + 2 : at + 1;
  return text.slice(from, end);
}

function sseFrameTooLarge(what: string): DroverError {
  return new DroverError({ kind: 'provider.garbled', message: `${what} of the stream is over 16 MB` });
}
