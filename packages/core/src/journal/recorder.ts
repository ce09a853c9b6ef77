// Recorder: writes a session's events to its journal, and notes streaming text once a second.
//
// Partial notes
//   While an answer streams, a timer writes the new text of the changed blocks at most once a second. Further
//   text does not restart the timer. The notes are for people who look after a crash. `message_end` comes after
//   them and carries the whole message, so it always wins.
//
// Failure: a note that cannot be written is reported and skipped. The next one starts where the last good one ended.

import type { Store } from '../bus.ts';
import { EVENTS, type Recorded } from '@drover/protocol/events';
import { GrowingText } from '../growing-text.ts';
import type { JsonObject } from '@drover/protocol/json';
import type { Journal } from './file/journal.ts';

const NOTE_MS = 1_000;

type Streamed = Extract<Recorded, { readonly type: 'text_delta' | 'thinking_delta' }>;
type Block = { readonly like: Streamed; readonly text: GrowingText; noted: number; at: string };

export type RecorderOptions = {
  readonly journal: Pick<Journal, 'append'>;
  readonly noteMs?: number;
  readonly diagnose: (message: string) => void;
};

export class Recorder implements Store {
  readonly #options: RecorderOptions;
  readonly #blocks = new Map<string, Block>();
  #current: Block | undefined; // the block of the latest delta
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  append(events: readonly Recorded[]): Promise<void> {
    const kept: Recorded[] = [];
    for (const event of events) {
      if (EVENTS[event.type].delivery === 'lossy') this.note(event);
      else kept.push(event);
      if (event.type === 'message_end' || event.type === 'attempt_discarded') this.#forget(event.worker);
    }
    return this.#options.journal.append(
      kept as readonly JsonObject[],
      kept.some(({ type }) => EVENTS[type].durable),
    );
  }

  note(event: Recorded): void {
    if (event.type !== 'text_delta' && event.type !== 'thinking_delta') return;
    const block = this.#blockOf(event);
    block.text.add(event.delta);
    block.at = event.at;
    this.#timer ??= setTimeout(() => this.#write(), this.#options.noteMs ?? NOTE_MS);
  }

  #blockOf(event: Streamed): Block {
    // Most deltas belong to the same block as the previous one, and building the key is the costly part.
    if (this.#current !== undefined && isSameRecordedBlock(this.#current.like, event)) return this.#current;
    const key = `${event.worker} ${event.type} ${event.part}`;
    const block = this.#blocks.get(key) ?? { like: event, text: new GrowingText(''), noted: 0, at: event.at };
    this.#blocks.set(key, block);
    this.#current = block;
    return block;
  }

  /** Drops the blocks of a worker whose answer is complete or discarded. */
  #forget(worker: number | undefined): void {
    this.#current = undefined;
    for (const [key, { like }] of this.#blocks) if (like.worker === worker) this.#blocks.delete(key);
    if (this.#blocks.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #write(): void {
    this.#timer = undefined;
    const changed = [...this.#blocks.values()].filter(({ text, noted }) => text.whole.length > noted);
    const records = changed.map(partialRecordOf);
    const upTo = changed.map(({ text }) => text.whole.length);
    // The journal keeps the order of appends, so a `message_end` that arrives meanwhile comes after these notes.
    this.#options.journal.append(records, false).then(
      () => changed.forEach((block, at) => (block.noted = upTo[at] ?? block.noted)),
      (error: Error) => this.#options.diagnose(`what streams could not be noted: ${error.message}`),
    );
  }
}

function isSameRecordedBlock(a: Streamed, b: Streamed): boolean {
  return a.type === b.type && a.part === b.part && a.worker === b.worker;
}

/** Makes a `partial` record, with the time of the block's newest delta. */
function partialRecordOf({ like, text, noted, at }: Block): JsonObject {
  const { delta: _, type, part, ...envelope } = like;
  // Partial thinking has no signature: it is for display only and never goes back to a model.
  const kind = type === 'text_delta' ? { kind: 'text' } : { kind: 'thinking', unsigned: true };
  return {
    ...(envelope as JsonObject),
    at,
    type: 'partial',
    part,
    ...kind,
    from: noted,
    text: text.whole.slice(noted),
  };
}
