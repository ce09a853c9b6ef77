// Keeps a session's events in its journal: what matters at once and for good, what streams once a second.
//
// PARTIAL CONTENT
//   While an answer streams, what has arrived is noted at most once a second, by a clock that further
//   text doesn't push back, as the new text of the blocks that changed. It is there for people who look
//   after a crash; `message_end` carries the whole, stands behind it, and always wins. A note that can't
//   be written is told and left out: the next one begins where the last good one ended.

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
  #current: Block | undefined; // the one that the last delta belongs to
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
    // One delta mostly follows another of its block, and a key costs more than all else that is done with them.
    if (this.#current !== undefined && isSameBlock(this.#current.like, event)) return this.#current;
    const key = `${event.worker} ${event.type} ${event.part}`;
    const block = this.#blocks.get(key) ?? { like: event, text: new GrowingText(''), noted: 0, at: event.at };
    this.#blocks.set(key, block);
    this.#current = block;
    return block;
  }

  /** The answer is whole, or taken back: there is nothing left to note of it. */
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
    const records = changed.map(noteOf);
    const upTo = changed.map(({ text }) => text.whole.length);
    // Journal appends keep their order, so a message_end that comes meanwhile stands behind this.
    this.#options.journal.append(records, false).then(
      () => changed.forEach((block, at) => (block.noted = upTo[at] ?? block.noted)),
      (error: Error) => this.#options.diagnose(`what streams could not be noted: ${error.message}`),
    );
  }
}

function isSameBlock(a: Streamed, b: Streamed): boolean {
  return a.type === b.type && a.part === b.part && a.worker === b.worker;
}

/** A note carries the time of its newest piece. */
function noteOf({ like, text, noted, at }: Block): JsonObject {
  const { delta: _, type, part, ...envelope } = like;
  // Thinking in pieces has no signature: it is for display, and never goes back to a model.
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
