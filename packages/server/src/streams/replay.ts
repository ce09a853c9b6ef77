// Replay: the history of one stream, which is the journal's records with the text of each block as deltas.
//
// Guarantees, for a reader that has every event up to `after`
//   1. Frames come in order of their numbers, so at every frame the reader has all before it.
//   2. The deltas of a block, earlier ones included, sum to the text of its `_end`. If that is impossible because the
//      deltas are gone, the `_end` carries `gap`.
//
// Deltas come from this process's log if it has them. The text of any other block comes as one delta, unless the
// reader was in the middle of the block.

import type { Recorded } from '@drover/protocol/events';
import { SEQ_JUMP } from '@drover/core/journal/cut-off';
import { isQuietRecord } from '@drover/core/journal/history';
import type { JsonObject } from '@drover/protocol/json';
import type { DeltaLog, Pieces } from './delta-log.ts';
import { streamFrameOf, streamFrameOfRecord, joinedStreamFrames, streamFramesWithGap, type Frame } from './frame.ts';

type BlockEnd = Extract<Recorded, { readonly type: 'text_end' | 'thinking_end' }>;

export type ReplayOptions = {
  readonly after: number;
  /** The last event of the history. The stream gets later ones live. */
  readonly upTo: number;
  readonly log: DeltaLog;
};

export class Replay {
  readonly #options: ReplayOptions;
  readonly #pieces: Pieces;
  readonly #starts = new Map<string, number>(); // of blocks that are open, by worker and part
  #lastSeq = 0;
  #lastType: string | undefined;
  #end = { seq: 0, isQuiet: true }; // of the journal as far as it was read

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.#pieces = options.log.since(options.after);
  }

  /** The type of the last event read so far, including events that the reader knows. */
  get lastType(): string | undefined {
    return this.#lastType;
  }

  frames(records: readonly JsonObject[]): readonly Frame[] {
    for (const { seq, type } of records)
      if (typeof seq === 'number') this.#end = { seq: Math.max(this.#end.seq, seq), isQuiet: isQuietRecord(type) };
    return records.flatMap((record) => this.#framesOf(record));
  }

  /** The last event of the journal, if the reader named a later one that never existed. */
  get lastTold(): number | undefined {
    const { after, upTo } = this.#options;
    const { seq, isQuiet: isAll } = this.#end;
    if (Number.isFinite(upTo)) return after > Math.max(upTo, seq) ? Math.max(upTo, seq) : undefined;
    // Deltas have numbers too, and a process that is gone may have sent some after the last record.
    return after > seq + (isAll ? 0 : SEQ_JUMP) ? seq : undefined;
  }

  /** Deltas after the last record. */
  rest(): readonly Frame[] {
    return this.#pieces.before(this.#options.upTo + 1);
  }

  #framesOf(record: JsonObject): readonly Frame[] {
    const { after, upTo } = this.#options;
    const frame = streamFrameOfRecord(record, after);
    if (frame === undefined || frame.seq > upTo) return [];
    // A run may be delivered after its end, and that is not a new beginning.
    if (frame.type !== 'delivered') this.#lastType = frame.type;
    const event = replayedEvent(record);
    if (isReplayedBlockStart(event)) this.#starts.set(replayedBlockKey(event), event.seq);
    const frames = frame.seq <= after ? [] : [...this.#pieces.before(frame.seq), ...this.#told(record, frame)];
    this.#lastSeq = frame.seq;
    return frames;
  }

  #told(record: JsonObject, frame: Frame): readonly Frame[] {
    const { after, log } = this.#options;
    const event = replayedEvent(record);
    if (!isReplayedBlockEnd(event) || event.text === '' || log.hasEnding(event.seq) || after === event.seq - 1)
      return [frame];
    const start = this.#starts.get(replayedBlockKey(event)) ?? after;
    return start < after ? [streamFramesWithGap(frame)] : replayWithText(record, frame, this.#lastSeq);
  }
}

/** The frame of a record; in front of the end of a block, its text as one delta. `last`: the event told before. */
export function replayWithText(record: JsonObject, frame: Frame, last: number): readonly Frame[] {
  const event = replayedEvent(record);
  if (!isReplayedBlockEnd(event) || event.text === '') return [frame];
  // The number in front of the `_end` was that of a delta, unless another event has it.
  const whole = replayedWholeDelta(event);
  return last < whole.seq ? [whole, frame] : [joinedStreamFrames(whole, frame)];
}

// Drover wrote these records, so the cast is safe.
function replayedEvent(record: JsonObject): Recorded {
  return record as unknown as Recorded;
}

function isReplayedBlockEnd(event: Recorded): event is BlockEnd {
  return event.type === 'text_end' || event.type === 'thinking_end';
}

function isReplayedBlockStart(
  event: Recorded,
): event is Extract<Recorded, { readonly type: 'text_start' | 'thinking_start' }> {
  return event.type === 'text_start' || event.type === 'thinking_start';
}

function replayedBlockKey({ worker, part }: { readonly worker?: number; readonly part: number }): string {
  return `${worker} ${part}`;
}

function replayedWholeDelta(event: BlockEnd): Frame {
  const { text: delta, type, ...rest } = event;
  return streamFrameOf({
    ...rest,
    seq: event.seq - 1,
    type: type === 'text_end' ? 'text_delta' : 'thinking_delta',
    delta,
  });
}
