// Feed: sends the events of one journal to any number of streams. Events come from the bus while this process writes
// the journal, otherwise from the file.
//
// Guarantees
//   1. A stream that begins after event n gets every durable event after n once, in order.
//   2. A stream that begins in the middle of an answer begins with the deltas so far (see replay.ts). While
//      this process writes the journal, the history of a stream ends with the last event sent, not with the end
//      of the file: an `_end` can be on disk before the deltas in front of it are sent.
//   3. The same holds when the source changes: the feed sends everything in the file before any event of the bus.
//   4. A stream that begins after an event which never existed gets the number of the last event.
//   5. An event is encoded once for all streams, and a slow reader delays no other (see event-stream.ts).

import type { Diagnose } from '@drover/core/diagnosis';
import { statSync } from 'node:fs';
import { ReaderLost, type Bus, type Reader } from '@drover/core/bus';
import type { PartialBlock } from '@drover/client/wire';
import { endOfJournalLines, readJournalPiece } from '@drover/core/journal/file/tail';
import { DeltaLog } from './delta-log.ts';
import { EventStream, type StreamOptions } from './event-stream.ts';
import { streamFrameOf, streamFrameOfRecord, type Frame } from './frame.ts';
import { Replay, replayWithText } from './replay.ts';

const LOOK_MS = 250;

export type FeedOptions = {
  readonly path: string; // of the journal
  readonly streamBytesMax: number;
  readonly commentMs: number;
  /** A stream ends after an event of this type. */
  readonly lastType?: string;
  readonly diagnose: Diagnose;
  /** Called when the feed has no stream and no bus. */
  readonly onIdle: () => void;
};

/** The last event sent from the bus, and the blocks that are open after it. */
export type Progress = { readonly seq: number; readonly open: readonly PartialBlock[] };

type PastEnd = {
  readonly ended: () => void; // nothing more comes by itself
  readonly beyond: (lastTold: number) => void; // the reader named a later event
};

type Rest = { readonly from: number; readonly bytes: number; readonly upTo: number };

export class Feed {
  readonly #options: FeedOptions;
  readonly #streams = new Set<EventStream>();
  readonly #replaying = new Set<EventStream>(); // those to which also the file is told as it grows
  readonly #atEnd = new Set<EventStream>(); // those whose past ended with the last event there is
  #log = new DeltaLog();
  #bus: Pick<Bus, 'reader' | 'told'> | undefined;
  #reader: Reader | undefined;
  #pumping: Promise<void> = Promise.resolve();
  #offset: Promise<number> | undefined; // how far the file has been told
  #told = 0; // the number of the last event
  #looking: NodeJS.Timeout | undefined;
  #commenting: NodeJS.Timeout | undefined;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** Takes events from this bus from now on. */
  follow(bus: Pick<Bus, 'reader' | 'told'>): void {
    this.#bus = bus;
    this.#listen(bus);
  }

  /** Stops following the bus, which is closed. */
  unfollow(bus: Pick<Bus, 'reader' | 'told'>): void {
    if (this.#bus !== bus) return;
    this.#bus = undefined;
    for (const stream of this.#atEnd) stream.finish();
    if (this.#reader !== undefined) return; // its last events are still to be told
    if (this.#streams.size === 0) this.#options.onIdle();
    else this.#look();
  }

  /** Streams every event after `after`: durable ones first, then live ones. */
  replay(after: number): EventStream {
    const bytes = this.#size();
    const replay = new Replay({ after, upTo: this.#toldTo, log: this.#log });
    const past = this.#past(replay, bytes, {
      ended: () => this.#ended(stream),
      beyond: (seq) => stream.rewind(seq),
    });
    const stream: EventStream = this.#stream({ after, past });
    this.#replaying.add(stream);
    return stream;
  }

  /** The last event sent and the blocks open after it; undefined without a bus. */
  progress(worker: number): Progress | undefined {
    return this.#reader && { seq: this.#toldTo, open: this.#log.open(worker) };
  }

  /** Streams live events only, up to the first one of type `until`. */
  live(until: string): EventStream {
    return this.#stream({ after: this.#bus?.told ?? 0, past: emptyFeedStream(), until });
  }

  /** Number of open streams. */
  get size(): number {
    return this.#streams.size;
  }

  /** Ends all streams once their queues are sent. */
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
    if (this.#bus !== undefined && this.#reader === undefined) this.#listen(this.#bus);
    else if (this.#reader === undefined) this.#look();
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
    this.#offset = undefined;
    if (this.#bus === undefined && this.#reader === undefined) this.#options.onIdle();
  }

  async *#past(replay: Replay, bytes: number, tell: PastEnd): AsyncGenerator<readonly Frame[]> {
    const { path, lastType } = this.#options;
    try {
      for (let from = 0; from < bytes;) {
        const { records, end } = await readJournalPiece({ path, from, to: bytes });
        yield replay.frames(records);
        if (end === undefined || end === from) break;
        from = end;
      }
      yield replay.rest();
      if (replay.lastTold !== undefined) tell.beyond(replay.lastTold);
    } catch (error) {
      this.#giveUp(error);
    }
    if (lastType !== undefined && replay.lastType === lastType) tell.ended();
  }

  /** The last event of a new stream's history. The stream gets every later event live. */
  get #toldTo(): number {
    return this.#reader === undefined ? Number.POSITIVE_INFINITY : Math.max(this.#told, this.#reader.after);
  }

  /** Ends a stream whose history is complete, unless a bus may bring more events. */
  #ended(stream: EventStream): void {
    if (this.#bus === undefined) stream.finish();
    else if (this.#streams.has(stream)) this.#atEnd.add(stream);
  }

  /** The current size of the journal in bytes. */
  #size(): number {
    return statSync(this.#options.path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** The offset in the file from which events are still to be sent. */
  async #end(): Promise<number> {
    const size = this.#size();
    return endOfJournalLines(this.#options.path, size).catch((error: unknown) => this.#giveUp(error));
  }

  #listen(bus: Pick<Bus, 'reader' | 'told'>): void {
    this.#stopLooking();
    const reader = bus.reader();
    this.#reader = reader;
    // The previous reader may still have earlier events to send.
    this.#pumping = this.#pumping.then(() => this.#pump(reader));
  }

  async #pump(reader: Reader): Promise<void> {
    try {
      await this.#catchUp(reader.after);
      this.#told = Math.max(this.#told, reader.after);
      for await (const event of reader) {
        this.#log.take(event);
        if (this.#streams.size > 0) this.#tell(streamFrameOf(event), this.#streams);
        else this.#told = event.seq;
      }
    } catch (error) {
      if (!(error instanceof ReaderLost)) this.#giveUp(error);
      this.#log = new DeltaLog(); // it misses what was not read
      for (const stream of this.#streams) stream.lose();
    }
    if (this.#reader !== reader) return; // another bus is followed
    this.#reader = undefined;
    if (this.#streams.size > 0) this.#look();
    else if (this.#bus === undefined) this.#options.onIdle();
  }

  /** Polls the file, since another process may write the journal. */
  #look(): void {
    this.#looking ??= setInterval(() => void this.#catchUp(), LOOK_MS);
  }

  #stopLooking(): void {
    clearInterval(this.#looking);
    this.#looking = undefined;
  }

  /** Sends new events of the file. Calls run one at a time, so that no event is sent twice. */
  async #catchUp(upTo = Number.POSITIVE_INFINITY): Promise<void> {
    const bytes = this.#size();
    this.#offset = this.#offset
      ?.then((from) => this.#tellFile({ from, bytes, upTo }))
      .catch((error: unknown) => this.#giveUp(error));
    await this.#offset;
  }

  async #tellFile({ from: offset, bytes, upTo }: Rest): Promise<number> {
    const { path } = this.#options;
    let from = offset;
    while (from < bytes) {
      const { records, end } = await readJournalPiece({ path, from, to: bytes });
      for (const record of records) {
        const frame = streamFrameOfRecord(record, this.#told);
        // The bus sends the events after `upTo`.
        if (frame === undefined || frame.seq <= this.#told || frame.seq > upTo) continue;
        for (const each of replayWithText(record, frame, this.#told)) this.#tell(each, this.#replaying);
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

  /** Ends all streams because the journal is gone or unreadable. */
  #giveUp(error: unknown): number {
    this.#options.diagnose('a journal could not be read', { path: this.#options.path, error: String(error) }, 'warn');
    this.end();
    return 0;
  }
}

async function* emptyFeedStream(): AsyncGenerator<readonly Frame[]> {
  // Live streams have no backlog.
}
