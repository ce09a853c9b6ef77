// The event bus: numbers each event, stores it, then delivers it to any number of readers.
//
// Guarantees
//   1. With a store, an event is durable before readers get it. `settled` waits for that. Deltas are delivered at
//      once, but never before earlier events.
//   2. Sequence numbers start at 1 and increase by 1.
//   3. `emit` never waits: every reader has its own queue, bounded in bytes.
//   4. A reader that keeps up gets every event unchanged. For a reader that lags by more than 6 MB, adjacent deltas
//      of one block are merged. Past half of its bound, deltas are dropped: the next event has `gap: true`, and
//      the block's `_end` holds the whole text.
//   5. No other event is dropped. A reader whose queue is full is disconnected, and its iteration throws ReaderLost.

import { EVENTS, type Event, type Owner, type Place, type Recorded } from '@drover/protocol/events';
import { oneByOne } from './one-by-one.ts';
import { handled } from './promises.ts';

const QUEUE_BYTES_MAX = 48 * 1024 * 1024;
// Must exceed what one turn of the event loop can bring: 2 MB from a socket, which is 4 MB as events.
const LAGGING_BYTES = 6 * 1024 * 1024;
const ENVELOPE_BYTES = 200;

type Streamed = Extract<Recorded, { readonly type: 'text_delta' | 'thinking_delta' }>;

export type Shown = Recorded & { readonly gap?: true };

export class ReaderLost extends Error {
  override readonly name = 'ReaderLost';
}

/** Stores events. It receives all of them and decides which to write, and how. */
export type Store = {
  /** Resolves when the events are durable. */
  readonly append: (events: readonly Recorded[]) => Promise<void>;
  /** Receives a delta that is delivered without waiting for the disk. */
  readonly note: (event: Recorded) => void;
};

export type BusOptions = {
  readonly owner: Owner;
  readonly lastSeq: number; // 0 at first
  readonly store?: Store;
  /** Returns the events to emit instead: redaction, which may delay text until it is known to be harmless. */
  readonly pass: (event: Event, place: Place) => readonly Event[];
};

export class Bus {
  readonly #options: BusOptions;
  readonly #readers = new Set<Reader>();
  #seq: number;
  #told: number; // number of the last event delivered to readers
  #lastMs = 0;
  #lastTime = '';
  #isTimeFresh = false;
  #lastStreamed: Streamed | undefined;
  #unstored: Recorded[] = [];
  #storedSeq = 0;
  #storing: Promise<void> | undefined; // the current batch; a failed one stays here

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

  /** Number of the last event delivered to readers. */
  get told(): number {
    return this.#told;
  }

  /** Resolves when every event emitted so far is durable and delivered. Rejects forever after a failed write. */
  async settled(): Promise<void> {
    const upTo = this.#seq;
    while (this.#storing !== undefined && this.#storedSeq < upTo) await this.#storing;
  }

  /** Returns a reader of all events delivered from now on. */
  reader(bytesMax: number = QUEUE_BYTES_MAX): Reader {
    const reader = new Reader(bytesMax, this.#told, () => this.#readers.delete(reader));
    this.#readers.add(reader);
    return reader;
  }

  /** Ends all readers once they have read their queues. */
  close(): void {
    for (const reader of this.#readers) reader.finish();
    this.#readers.clear();
  }

  #stamped(event: Event, place: Place): Recorded {
    const { owner } = this.#options;
    if (event.type !== 'text_delta' && event.type !== 'thinking_delta')
      return { v: 1, seq: this.#seq, at: this.#now(), ...owner, ...place, ...event };
    const last = this.#lastStreamed;
    // Most deltas continue the last block. Copying the last event costs a fifth of merging three objects.
    this.#lastStreamed =
      last !== undefined && last.part === event.part && last.type === event.type && isSamePlaceOnBus(last, place)
        ? { ...last, seq: this.#seq, at: this.#now(), delta: event.delta }
        : { v: 1, seq: this.#seq, at: this.#now(), ...owner, ...place, ...event };
    return this.#lastStreamed;
  }

  // Events of one synchronous run share a timestamp: reading and formatting the time is most of the cost of `emit`.
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
    // `settled` reports a failure.
    handled(this.#storing);
  }

  async #storeAll(store: Store): Promise<void> {
    // Wait, so that events of one run share one sync: an answer and the starts of its calls.
    await new Promise<void>((resolve) => setImmediate(resolve));
    const batch = this.#unstored;
    this.#unstored = [];
    await store.append(batch);
    for (const event of batch) this.#tell(event);
    this.#storedSeq = batch.at(-1)?.seq ?? this.#storedSeq;
    // Events emitted during the write form the next batch.
    if (this.#unstored.length > 0) this.#storeSoon(store);
    else this.#storing = undefined;
  }

  #tell(event: Recorded): void {
    this.#told = event.seq;
    for (const reader of this.#readers) reader.push(event);
  }
}

export class Reader implements AsyncIterable<Shown> {
  /** Number of the last event delivered before this reader existed. The reader gets every later one. */
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
    const size = sizeOfBusEvent(event);
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
    // The bus must not keep a finished reader in memory.
    this.#leave();
    this.#wake?.();
  }

  /** Stops reading and drops the queue. */
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
        // Wait for the next macrotask, so that events from one read of the socket arrive as one batch.
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
    if (last === undefined || !('delta' in last) || !('delta' in event) || !sameBlockOnBus(last, event)) return false;
    if (this.#bytes + event.delta.length * 2 > this.#bytesMax / 2) return false;
    // A reader that reconnects with this number has received both deltas.
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

function isSamePlaceOnBus(a: Place, b: Place): boolean {
  return (
    a.step === b.step && a.turn === b.turn && a.worker === b.worker && a.task === b.task && a.attempt === b.attempt
  );
}

function sameBlockOnBus(a: Recorded, b: Recorded): boolean {
  if (a.type !== b.type || a.step !== b.step || a.worker !== b.worker || a.turn !== b.turn) return false;
  if ('callId' in a && 'callId' in b) return a.callId === b.callId;
  return 'part' in a && 'part' in b && a.part === b.part;
}

// Most events are deltas, so their size is computed from the text alone.
function sizeOfBusEvent(event: Recorded): number {
  return 'delta' in event ? ENVELOPE_BYTES + event.delta.length * 2 : sizeOfBusValue(event);
}

function sizeOfBusValue(value: unknown): number {
  if (typeof value === 'string') return value.length * 2;
  if (typeof value !== 'object' || value === null) return 8;
  let size = ENVELOPE_BYTES;
  for (const key in value) size += key.length + sizeOfBusValue(value[key as keyof typeof value]);
  return size;
}
