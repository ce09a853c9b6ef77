// The deltas of recent answers, so that a reader who joins in the middle of one gets the rest of it from its position.
//
// Guarantees
//   1. For each block whose start was logged, the log can repeat the text between any two event numbers.
//   2. Blocks of an answer that is not whole yet are never evicted. Older ones are, once the log is full.
//
// A block is known from its `_start` on. A log that lost deltas (`gap`) forgets its blocks: readers are told
// `gap` instead of a wrong text.

import type { PartialBlock } from '@drover/client/wire';
import type { Shown } from '@drover/core/bus';
import type { Recorded } from '@drover/protocol/events';
import { GrowingText } from '@drover/core/growing-text';
import { streamFrameOf, type Frame } from './frame.ts';

const ENTRIES_MAX = 20_000;

type Delta = Extract<Recorded, { readonly type: 'text_delta' | 'thinking_delta' | 'toolcall_delta' }>;
type Block = { readonly part: number; readonly text: GrowingText; like?: Delta; chars: number; isOpen: boolean };
type Entry = { readonly seq: number; readonly at: string; readonly block: Block; readonly from: number };

export class DeltaLog {
  readonly #entriesMax: number;
  readonly #answers = new Map<number | undefined, Map<number, Block>>(); // by worker, then by part
  #entries: Entry[] = [];
  #endings = new Map<number, Block>(); // by the number of the `_end`

  constructor(entriesMax: number = ENTRIES_MAX) {
    this.#entriesMax = entriesMax;
  }

  take(event: Shown): void {
    if (event.gap === true) this.#forget();
    switch (event.type) {
      case 'text_delta':
      case 'thinking_delta':
      case 'toolcall_delta':
        return this.#add(event);
      case 'message_start':
        this.#answers.delete(event.worker);
        return;
      case 'text_start':
      case 'thinking_start':
      case 'toolcall_start':
        return this.#begin(event);
      case 'text_end':
      case 'thinking_end':
      case 'toolcall_end':
        return this.#end(event);
      case 'message_end':
      case 'attempt_discarded':
      case 'session_end':
        this.#answers.delete(event.worker);
        this.#evict();
    }
  }

  /** True if the log can repeat the deltas of the block that ended with this event. */
  hasEnding(seq: number): boolean {
    return this.#endings.has(seq);
  }

  /** The deltas behind the event `after`, as they are at this moment. */
  since(after: number): Pieces {
    return new Pieces(this.#entries.slice(this.#indexBehind(after)));
  }

  /** Blocks of an answer that have begun and not ended. */
  open(worker: number | undefined): readonly PartialBlock[] {
    const blocks = [...(this.#answers.get(worker)?.values() ?? [])];
    return blocks.flatMap(({ part, text, like, isOpen }) => {
      if (!isOpen || like === undefined || like.type === 'toolcall_delta') return [];
      return [{ part, type: like.type === 'text_delta' ? 'text' : 'thinking', text: text.whole }];
    });
  }

  #begin({ worker, part }: { readonly worker?: number; readonly part: number }): void {
    const answer = this.#answers.get(worker) ?? new Map<number, Block>();
    answer.set(part, { part, text: new GrowingText(''), chars: 0, isOpen: true });
    this.#answers.set(worker, answer);
  }

  #add(event: Delta): void {
    const block = this.#answers.get(event.worker)?.get(event.part);
    if (block === undefined) return;
    block.like ??= event;
    this.#entries.push({ seq: event.seq, at: event.at, block, from: block.chars });
    block.text.add(event.delta);
    block.chars += event.delta.length;
  }

  #end({ worker, part, seq }: Recorded & { readonly part: number }): void {
    const block = this.#answers.get(worker)?.get(part);
    if (block === undefined) return;
    block.isOpen = false;
    if (block.chars > 0) this.#endings.set(seq, block);
  }

  /** Drops the older half of what is not needed, block by whole block. */
  #evict(): void {
    if (this.#entries.length <= this.#entriesMax) return;
    const needed = new Set([...this.#answers.values()].flatMap((answer) => [...answer.values()]));
    const older = this.#entries.slice(0, -Math.ceil(this.#entriesMax / 2)).map(({ block }) => block);
    const evicted = new Set(older.filter((block) => !needed.has(block)));
    this.#entries = this.#entries.filter(({ block }) => !evicted.has(block));
    this.#endings = new Map([...this.#endings].filter(([, block]) => !evicted.has(block)));
  }

  #forget(): void {
    this.#answers.clear();
    this.#endings.clear();
    this.#entries = [];
  }

  #indexBehind(after: number): number {
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle]?.seq ?? 0) > after) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Deltas as frames, in order. Neighbours of one block come as one frame, under the number of the last. */
export class Pieces {
  readonly #entries: readonly Entry[];
  readonly #ends: readonly number[]; // of each entry, in the text of its block
  #at = 0;

  constructor(entries: readonly Entry[]) {
    this.#entries = entries;
    const ends = new Map<Block, number>();
    this.#ends = entries
      .toReversed()
      .map(({ block, from }) => {
        const end = ends.get(block) ?? block.chars;
        ends.set(block, from);
        return end;
      })
      .toReversed();
  }

  /** Those before this event that were not given yet. */
  before(seq: number): readonly Frame[] {
    const frames: Frame[] = [];
    while (this.#at < this.#entries.length && (this.#entries[this.#at]?.seq ?? seq) < seq) {
      const first = this.#at;
      const block = this.#entries[first]?.block;
      while (this.#entries[this.#at]?.block === block && (this.#entries[this.#at]?.seq ?? seq) < seq) this.#at += 1;
      frames.push(...this.#joined(first, this.#at - 1));
    }
    return frames;
  }

  #joined(first: number, last: number): readonly Frame[] {
    const [from, to] = [this.#entries[first], this.#entries[last]];
    if (from === undefined || to?.block.like === undefined) return [];
    const delta = to.block.text.whole.slice(from.from, this.#ends[last]);
    return [streamFrameOf({ ...to.block.like, seq: to.seq, at: to.at, delta })];
  }
}
