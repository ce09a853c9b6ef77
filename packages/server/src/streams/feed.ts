// The events of one journal, to any number of streams. They come from the bus while this process writes the
// journal, and from the file while nobody does, or somebody else.
//
// WHAT HOLDS
//   A stream that begins behind event n gets every kept event after n once. Where the journal ends at that
//   moment is where its past ends, whenever it is read; what comes behind is told to it as it happens, deltas
//   included. What is told has been written before, so the past misses nothing that was told, and what is
//   in both is left out once. The same holds when the source changes: whatever the file has is told before
//   what the bus tells next.
//   An event is written out once, however many hear it; who is slow is slow alone (see event-stream.ts).

import { statSync } from 'node:fs';
import { ReaderLost, type Bus, type Reader } from '@drover/core/bus';
import { endOfLines, readPiece } from '@drover/core/journal/tail';
import { EventStream, type StreamOptions } from './event-stream.ts';
import { frameOf, frameOfRecord, type Frame } from './frame.ts';

const LOOK_MS = 250;

export type FeedOptions = {
  readonly path: string; // of the journal
  readonly streamBytesMax: number;
  readonly commentMs: number;
  /** A stream is over behind an event of this type. */
  readonly lastType?: string;
  readonly diagnose: (message: string, fields: object) => void;
  /** Nobody listens, and nobody here writes. */
  readonly onIdle: () => void;
};

export class Feed {
  readonly #options: FeedOptions;
  readonly #streams = new Set<EventStream>();
  readonly #replaying = new Set<EventStream>(); // those to which also the file is told as it grows
  readonly #atEnd = new Set<EventStream>(); // those whose past ended with the last event there is
  #bus: Pick<Bus, 'reader'> | undefined;
  #reader: Reader | undefined;
  #pumping: Promise<void> = Promise.resolve();
  #offset: Promise<number> | undefined; // how far the file has been told
  #told = 0; // the number of the last event
  #looking: NodeJS.Timeout | undefined;
  #commenting: NodeJS.Timeout | undefined;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** From now on its events come from here. */
  follow(bus: Pick<Bus, 'reader'>): void {
    this.#bus = bus;
    if (this.#streams.size > 0) this.#listen(bus);
  }

  /** The bus is closed. */
  unfollow(bus: Pick<Bus, 'reader'>): void {
    if (this.#bus !== bus) return;
    this.#bus = undefined;
    for (const stream of this.#atEnd) stream.finish();
    if (this.#streams.size === 0) this.#options.onIdle();
    else if (this.#reader === undefined) this.#look();
  }

  /** Everything behind the event `after`, kept first, then as it happens. */
  replay(after: number): EventStream {
    const upTo = this.#size();
    const stream: EventStream = this.#stream({ after, past: this.#past(after, upTo, () => this.#ended(stream)) });
    this.#replaying.add(stream);
    return stream;
  }

  /** Only what happens from now on, up to the first event of this type. */
  live(until: string): EventStream {
    return this.#stream({ after: 0, past: nothing(), until });
  }

  /** How many listen. */
  get size(): number {
    return this.#streams.size;
  }

  /** Ends all streams, once they have sent what they have. */
  end(): void {
    for (const stream of this.#streams) stream.finish();
  }

  #stream(how: Pick<StreamOptions, 'after' | 'past' | 'until'>): EventStream {
    const { streamBytesMax: bytesMax, commentMs, lastType } = this.#options;
    const until = how.until ?? lastType;
    const onEnd = (): void => this.#remove(stream);
    const stream = new EventStream({ ...how, ...(until !== undefined && { until }), bytesMax, onEnd });
    this.#streams.add(stream);
    this.#offset ??= this.#end();
    if (this.#bus === undefined) this.#look();
    else if (this.#reader === undefined) this.#listen(this.#bus);
    this.#commenting ??= setInterval(() => {
      for (const each of this.#streams) each.comment();
    }, commentMs);
    return stream;
  }

  #remove(stream: EventStream): void {
    this.#streams.delete(stream);
    this.#replaying.delete(stream);
    this.#atEnd.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#commenting);
    this.#commenting = undefined;
    this.#stopLooking();
    this.#reader?.close();
    this.#reader = undefined;
    this.#offset = undefined;
    if (this.#bus === undefined) this.#options.onIdle();
  }

  async *#past(after: number, upTo: number, ended: () => void): AsyncGenerator<readonly Frame[]> {
    const { path, lastType } = this.#options;
    let last: string | undefined;
    try {
      for (let from = 0; from < upTo;) {
        const { records, end } = await readPiece({ path, from, to: upTo });
        const frames = records.flatMap((record) => frameOfRecord(record) ?? []);
        last = frames.at(-1)?.type ?? last;
        yield frames.filter(({ seq }) => seq > after);
        if (end === undefined || end === from) break;
        from = end;
      }
    } catch (error) {
      this.#giveUp(error);
    }
    if (last !== undefined && last === lastType) ended();
  }

  /** All is told, unless somebody is about to go on with it. */
  #ended(stream: EventStream): void {
    if (this.#bus === undefined) stream.finish();
    else if (this.#streams.has(stream)) this.#atEnd.add(stream);
  }

  /** How much there is at this moment. */
  #size(): number {
    return statSync(this.#options.path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Where what is to be told begins. */
  async #end(): Promise<number> {
    const size = this.#size();
    return endOfLines(this.#options.path, size).catch((error: unknown) => this.#giveUp(error));
  }

  #listen(bus: Pick<Bus, 'reader'>): void {
    this.#stopLooking();
    const reader = bus.reader();
    this.#reader = reader;
    const upTo = this.#size(); // all that is written behind it will be told by the bus
    // The last one may still have something to tell that comes before.
    this.#pumping = this.#pumping.then(() => this.#pump(reader, upTo));
  }

  async #pump(reader: Reader, upTo: number): Promise<void> {
    try {
      await this.#catchUp(upTo);
      for await (const event of reader) this.#tell(frameOf(event), this.#streams);
    } catch (error) {
      if (!(error instanceof ReaderLost)) this.#giveUp(error);
      for (const stream of this.#streams) stream.lose();
    }
    if (this.#reader !== reader) return; // nobody listens any more, or to another bus
    this.#reader = undefined;
    if (this.#bus === undefined && this.#streams.size > 0) this.#look();
  }

  /** Somebody else may write the journal. */
  #look(): void {
    this.#looking ??= setInterval(() => void this.#catchUp(this.#size()), LOOK_MS);
  }

  #stopLooking(): void {
    clearInterval(this.#looking);
    this.#looking = undefined;
  }

  /** Tells what the file has more than was told of it: one at a time, so that nothing is told twice. */
  async #catchUp(upTo: number): Promise<void> {
    this.#offset = this.#offset
      ?.then((from) => this.#tellFile(from, upTo))
      .catch((error: unknown) => this.#giveUp(error));
    await this.#offset;
  }

  async #tellFile(offset: number, upTo: number): Promise<number> {
    const { path } = this.#options;
    let from = offset;
    while (from < upTo) {
      const { records, end } = await readPiece({ path, from, to: upTo });
      for (const record of records) {
        const frame = frameOfRecord(record);
        if (frame !== undefined && frame.seq > this.#told) this.#tell(frame, this.#replaying);
      }
      if (end === undefined || end === from) break;
      from = end;
    }
    return from;
  }

  #tell(frame: Frame, streams: ReadonlySet<EventStream>): void {
    this.#told = Math.max(this.#told, frame.seq);
    for (const stream of streams) stream.push(frame);
  }

  /** The journal is gone, or can't be read: there is nothing more to tell from it. */
  #giveUp(error: unknown): number {
    this.#options.diagnose('a journal could not be read', { path: this.#options.path, error: String(error) });
    this.end();
    return 0;
  }
}

async function* nothing(): AsyncGenerator<readonly Frame[]> {
  // There is no past of what is to happen.
}
