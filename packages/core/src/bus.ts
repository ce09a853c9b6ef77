// The bus: stamps each event once, has it stored, then hands it to any number of readers.
//
// WHAT HOLDS
//   With a store, an event that must not be lost is on the disk before anybody is told of it; `settled`
//   waits for that. Deltas are told at once, but never before what happened before them.
//   Sequence numbers start at 1 and rise by 1. `emit` never waits: every reader has a queue of its own,
//   bounded in bytes. A reader that keeps up gets every event as it was. For one that lags by more
//   than 6 MB, neighbouring deltas of one block are joined; past half of its bound deltas are dropped,
//   the next event it gets carries `gap: true`, and the block's `_end` repairs the text. Nothing else
//   is ever dropped: a reader whose queue is full all the same is cut off, and its iteration throws
//   ReaderLost, so that nobody takes a part for the whole.

import { EVENTS, type Event, type Owner, type Place, type Recorded } from '@drover/protocol/events';
import { oneByOne } from './one-by-one.ts';

const QUEUE_BYTES_MAX = 48 * 1024 * 1024;
// More than one turn of the event loop can bring, or nobody could keep up: 2 MB from a socket, twice that as events.
const LAGGING_BYTES = 6 * 1024 * 1024;
const ENVELOPE_BYTES = 200;

type Streamed = Extract<Recorded, { readonly type: 'text_delta' | 'thinking_delta' }>;

export type Shown = Recorded & { readonly gap?: true };

export class ReaderLost extends Error {
  override readonly name = 'ReaderLost';
}

/** Where events are kept. It is given all of them and decides which to keep, and how. */
export type Store = {
  /** Resolves when what must not be lost can't be lost any more. */
  readonly append: (events: readonly Recorded[]) => Promise<void>;
  /** A delta that is shown without waiting. */
  readonly note: (event: Recorded) => void;
};

export type BusOptions = {
  readonly owner: Owner;
  readonly lastSeq: number; // 0 at first
  readonly store?: Store;
  /** What is shown instead of an event: redaction, which may hold text back until it is known to be harmless. */
  readonly pass: (event: Event, place: Place) => readonly Event[];
};

export class Bus {
  readonly #options: BusOptions;
  readonly #readers = new Set<Reader>();
  #seq: number;
  #told: number; // the number of the last event that readers were told
  #lastMs = 0;
  #lastTime = '';
  #isTimeFresh = false;
  #lastStreamed: Streamed | undefined;
  #unstored: Recorded[] = [];
  #storedSeq = 0;
  #storing: Promise<void> | undefined; // a batch at a time; it stays where it failed

  constructor(options: BusOptions) {
    this.#options = options;
    this.#seq = options.lastSeq;
    this.#told = options.lastSeq;
  }

  emit(event: Event, place: Place): void {
    for (const shown of this.#options.pass(event, place)) {
      this.#seq += 1;
      this.#keep(this.#stamped(shown, place));
    }
  }

  /** The number of the last event that readers were told. */
  get told(): number {
    return this.#told;
  }

  /** Everything emitted so far is stored and told. Once something could not be, nothing after it is either. */
  async settled(): Promise<void> {
    const upTo = this.#seq;
    while (this.#storing !== undefined && this.#storedSeq < upTo) await this.#storing;
  }

  /** Reads everything emitted from now on. */
  reader(bytesMax: number = QUEUE_BYTES_MAX): Reader {
    const reader = new Reader(bytesMax, this.#told, () => this.#readers.delete(reader));
    this.#readers.add(reader);
    return reader;
  }

  /** No more events: readers end once they have read what is queued. */
  close(): void {
    for (const reader of this.#readers) reader.finish();
    this.#readers.clear();
  }

  #stamped(event: Event, place: Place): Recorded {
    const { owner } = this.#options;
    if (event.type !== 'text_delta' && event.type !== 'thinking_delta')
      return { v: 1, seq: this.#seq, at: this.#now(), ...owner, ...place, ...event };
    const last = this.#lastStreamed;
    // Most events by far go on where the last one ended. To copy that one costs a fifth of putting three together.
    this.#lastStreamed =
      last !== undefined && last.part === event.part && last.type === event.type && isSamePlace(last, place)
        ? { ...last, seq: this.#seq, at: this.#now(), delta: event.delta }
        : { v: 1, seq: this.#seq, at: this.#now(), ...owner, ...place, ...event };
    return this.#lastStreamed;
  }

  // What happens in one go happens at one time. To ask for it, and to write it out, is what costs most of stamping.
  #now(): string {
    if (this.#isTimeFresh) return this.#lastTime;
    this.#isTimeFresh = true;
    queueMicrotask(() => (this.#isTimeFresh = false));
    const ms = Date.now();
    if (ms !== this.#lastMs) {
      this.#lastMs = ms;
      this.#lastTime = new Date(ms).toISOString();
    }
    return this.#lastTime;
  }

  #keep(event: Recorded): void {
    const { store } = this.#options;
    if (store === undefined) return this.#tell(event);
    if (this.#storing === undefined && EVENTS[event.type].delivery === 'lossy') {
      store.note(event);
      return this.#tell(event);
    }
    this.#unstored.push(event);
    if (this.#storing === undefined) this.#storeSoon(store);
  }

  #storeSoon(store: Store): void {
    this.#storing = this.#storeAll(store);
    // Whoever waits for `settled` hears of a failure.
    this.#storing.catch(() => undefined);
  }

  async #storeAll(store: Store): Promise<void> {
    // What happens in one go is stored in one go: an answer and the intents of its calls share a sync.
    await new Promise<void>((resolve) => setImmediate(resolve));
    const batch = this.#unstored;
    this.#unstored = [];
    await store.append(batch);
    for (const event of batch) this.#tell(event);
    this.#storedSeq = batch.at(-1)?.seq ?? this.#storedSeq;
    // What came meanwhile goes next.
    if (this.#unstored.length > 0) this.#storeSoon(store);
    else this.#storing = undefined;
  }

  #tell(event: Recorded): void {
    this.#told = event.seq;
    for (const reader of this.#readers) reader.push(event);
  }
}

export class Reader implements AsyncIterable<Shown> {
  /** The number of the last event that was told before this reader was made: it gets every later one. */
  readonly after: number;
  readonly #bytesMax: number;
  readonly #leave: () => void;
  #queue: Shown[] = [];
  #bytes = 0;
  #gap = false;
  #ended = false;
  #lost = false;
  #wake: (() => void) | undefined;

  constructor(bytesMax: number, after: number, leave: () => void) {
    this.after = after;
    this.#bytesMax = bytesMax;
    this.#leave = leave;
  }

  push(event: Recorded): void {
    if (this.#ended) return;
    const lossy = EVENTS[event.type].delivery === 'lossy';
    if (lossy && this.#join(event)) return;
    const size = sizeOf(event);
    if (lossy && this.#bytes + size > this.#bytesMax / 2) {
      this.#gap = true;
      return;
    }
    if (this.#bytes + size > this.#bytesMax) return this.#cutOff();
    this.#bytes += size;
    this.#queue.push(this.#gap ? { ...event, gap: true } : event);
    this.#gap = false;
    this.#wake?.();
  }

  finish(): void {
    this.#ended = true;
    // Who never reads what is queued must not be kept alive by the bus.
    this.#leave();
    this.#wake?.();
  }

  /** Stops reading; what is queued is forgotten. */
  close(): void {
    this.#queue = [];
    this.finish();
  }

  [Symbol.asyncIterator](): AsyncIterator<Shown> {
    return oneByOne(this.#batches());
  }

  async *#batches(): AsyncGenerator<readonly Shown[]> {
    try {
      while (true) {
        // The next macrotask, so that what arrived in one read of the socket is shown in one go.
        await new Promise<void>((resolve) => setImmediate(resolve));
        const batch = this.#queue;
        this.#queue = [];
        this.#bytes = 0;
        yield batch;
        if (this.#queue.length > 0) continue;
        if (this.#lost) throw new ReaderLost('this reader fell too far behind');
        if (this.#ended) return;
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = undefined;
      }
    } finally {
      this.close();
    }
  }

  #join(event: Recorded): boolean {
    if (this.#bytes < LAGGING_BYTES) return false;
    const last = this.#queue.at(-1);
    if (last === undefined || !('delta' in last) || !('delta' in event) || !sameBlock(last, event)) return false;
    if (this.#bytes + event.delta.length * 2 > this.#bytesMax / 2) return false;
    // A reader that comes back with this number has heard both.
    this.#queue[this.#queue.length - 1] = { ...last, seq: event.seq, at: event.at, delta: last.delta + event.delta };
    this.#bytes += event.delta.length * 2;
    return true;
  }

  #cutOff(): void {
    this.#lost = true;
    this.#queue = [];
    this.finish();
  }
}

function isSamePlace(a: Place, b: Place): boolean {
  return (
    a.step === b.step && a.turn === b.turn && a.worker === b.worker && a.task === b.task && a.attempt === b.attempt
  );
}

function sameBlock(a: Recorded, b: Recorded): boolean {
  if (a.type !== b.type || a.step !== b.step || a.worker !== b.worker || a.turn !== b.turn) return false;
  if ('callId' in a && 'callId' in b) return a.callId === b.callId;
  return 'part' in a && 'part' in b && a.part === b.part;
}

// Most events are deltas, and there are many: theirs is told from the text alone.
function sizeOf(event: Recorded): number {
  return 'delta' in event ? ENVELOPE_BYTES + event.delta.length * 2 : sizeOfValue(event);
}

function sizeOfValue(value: unknown): number {
  if (typeof value === 'string') return value.length * 2;
  if (typeof value !== 'object' || value === null) return 8;
  let size = ENVELOPE_BYTES;
  for (const key in value) size += key.length + sizeOfValue(value[key as keyof typeof value]);
  return size;
}
