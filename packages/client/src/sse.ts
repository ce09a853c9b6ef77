// Server-sent events parser, as in the WHATWG standard: bytes in, events out.
//
// Guarantees
//   1. Chunk boundaries do not matter, even inside a character or between CR and LF. No event is delayed.
//   2. Lines end in LF, CRLF or CR. A byte order mark, comments and unknown fields are ignored.
//   3. An id that contains NUL is ignored. An event without its closing blank line is dropped.
//   4. Parsing takes linear time: pieces of a line are joined once. A line or event over the bound throws.

const EVENT_CHARS_MAX = 64 * 1024 * 1024;

export type SseEvent = {
  readonly type: string; // `message` if the server sent none
  readonly data: string;
  readonly id: string; // the last id received, with this event or an earlier one; empty if none
};

/** The event exceeds the bound. A retry would fail again. */
export class SseTooLarge extends Error {
  override readonly name = 'SseTooLarge';
}

export class SseParser {
  // The decoder keeps split characters. The parser drops the byte order mark, since not all decoders do so once only.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #charsMax: number;
  #pieces: string[] = []; // the line that has not ended yet
  #pieceChars = 0;
  #isStarted = false;
  #isAfterCr = false;
  #type = '';
  #data: string[] = [];
  #dataChars = 0;
  #id = '';
  #lastId = '';
  #retryMs: number | undefined;
  #events: SseEvent[] = [];

  constructor(charsMax: number = EVENT_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  /** The reconnection time that the server sent, if any. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  push(bytes: Uint8Array): readonly SseEvent[] {
    const text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return [];
    let start = !this.#isStarted && text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0;
    this.#isStarted = true;
    for (let end = start; end < text.length; end++) {
      const char = text.charCodeAt(end);
      if (char !== LF && char !== CR) {
        this.#isAfterCr = false;
        continue;
      }
      const isRestOfCrLf = char === LF && this.#isAfterCr;
      this.#isAfterCr = char === CR;
      if (!isRestOfCrLf) this.#line(this.#whole(text.slice(start, end)));
      start = end + 1;
    }
    if (start < text.length) this.#keep(text.slice(start));
    return this.#take();
  }

  #keep(piece: string): void {
    this.#pieceChars += piece.length;
    if (this.#pieceChars > this.#charsMax) throw new SseTooLarge(`a line of the stream is over ${this.#charsMax}`);
    this.#pieces.push(piece);
  }

  #whole(end: string): string {
    if (this.#pieces.length === 0) return end;
    const line = this.#pieces.join('') + end;
    this.#pieces = [];
    this.#pieceChars = 0;
    return line;
  }

  #line(line: string): void {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    switch (field) {
      case 'data':
        this.#dataChars += value.length + 1;
        if (this.#dataChars > this.#charsMax) throw new SseTooLarge(`an event is over ${this.#charsMax} characters`);
        this.#data.push(value);
        return;
      case 'event':
        this.#type = value;
        return;
      case 'id':
        if (!value.includes('\0')) this.#id = value;
        return;
      case 'retry':
        if (/^\d+$/.test(value)) this.#retryMs = Number(value);
        return;
    }
  }

  #dispatch(): void {
    this.#lastId = this.#id;
    const data = this.#data;
    const type = this.#type === '' ? 'message' : this.#type;
    this.#type = '';
    if (data.length === 0) return;
    this.#data = [];
    this.#dataChars = 0;
    this.#events.push({ type, data: data.join('\n'), id: this.#lastId });
  }

  #take(): readonly SseEvent[] {
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }
}

const LF = 10;
const CR = 13;
const BYTE_ORDER_MARK = 0xfeff;
