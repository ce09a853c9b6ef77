// Server-sent events: bytes in, events out, as the WHATWG standard has it.
//
// Lines end in LF, CRLF or CR, a byte order mark may lead, `data` may span several lines, a line that begins
// with a colon is a comment, an id with a NUL in it is none, unknown fields mean nothing, and an event whose
// closing blank line never came does not count. However the bytes are split, also in the middle of a
// character or between a CR and its LF, the events are the same, and none waits longer than it must.
//
// Pieces of an unfinished line are kept as they came and joined once, so that a stream that arrives byte by
// byte costs no more than one that arrives at once. A line or an event that never ends fails at a bound.

const EVENT_CHARS_MAX = 64 * 1024 * 1024;

export type SseEvent = {
  readonly type: string; // `message` where the server named none
  readonly data: string;
  readonly id: string; // the last one told, with this event or before it; empty where none was
};

/** More than anybody sends: what would be asked for again would be too large again. */
export class SseTooLarge extends Error {
  override readonly name = 'SseTooLarge';
}

export class SseParser {
  // It keeps split characters. The byte order mark is dropped here, since not all do so once only.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #charsMax: number;
  #pieces: string[] = []; // of the line that has not ended
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

  /** How long the server wants a lost reader to wait before it comes back, once it has said so. */
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
