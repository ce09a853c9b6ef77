// Redacts a text that arrives in pieces, and shows each piece as soon as it is known to be harmless.
//
// WHAT HOLDS
//   Whatever the pieces, what push and flush return, put together, is what the whole text gives at
//   once. It follows from two things: each find depends on the text alone, and finds that overlap
//   or touch become one gap, named after the one that begins first.
//
// WHAT IS HELD BACK
//   Characters that could be the beginning of an anchor, and an anchor with what follows until it is
//   known whether it is a secret: in prose rarely more than the current word, and never more than
//   HELD_CHARS_MAX. Once a secret is certain its label is shown; the rest of it, however long, is
//   dropped as it comes.

import type { AnchorSearch, Cursor } from './anchor-search.ts';
import type { Tail } from './pattern.ts';
import { CONTEXT_CHARS, literalEnd, runEnd } from './pattern.ts';
import type { Suspect } from './suspects.ts';
import { ANCHOR_CHARS } from './suspects.ts';

/** A bound that follows from the longest shape; nothing enforces it but a test. */
export const HELD_CHARS_MAX = 512;

type Question = { readonly rank: number; start: number };
type Find = { readonly rank: number; start: number; end: number; tail: Tail | undefined; isShown: boolean };
type Stretch = { readonly start: number; readonly end: number; readonly isOver: boolean };

const TRIM_CHARS = 1_024; // how much disposed text is kept before it is cut off

export class DeltaRedaction {
  readonly #search: AnchorSearch;
  readonly #suspects: readonly Suspect[];
  #text = ''; // CONTEXT_CHARS that are disposed of, and all that is held back
  #disposed = 0; // up to here the text is shown or dropped
  #isGap = false; // whether the last disposed character was dropped
  #cursor: Cursor = { at: 0, row: 0 };
  #questions: Question[] = []; // anchors not yet judged
  #finds: Find[] = []; // by start; not yet shown, or still growing
  // What is measured is remembered while the text stays the same, so that many secrets in one run cost no more than one.
  readonly #stretches = new Map<Tail, Stretch>();
  readonly #stops = new Map<string, { readonly from: number; readonly at: number }>();

  constructor(search: AnchorSearch, suspects: readonly Suspect[]) {
    this.#search = search;
    this.#suspects = suspects;
  }

  /** Takes the next piece and returns what may be shown now. */
  push(delta: string): string {
    return this.#take(delta, false);
  }

  /** Says that the text is over and returns the rest; what is pushed afterwards begins a new text. */
  flush(): string {
    const shown = this.#take('', true);
    this.#text = '';
    this.#disposed = 0;
    this.#isGap = false;
    this.#cursor = { at: 0, row: 0 };
    this.#questions = [];
    this.#finds = [];
    return shown;
  }

  /** A whole text at once. */
  static whole(text: string, search: AnchorSearch, suspects: readonly Suspect[]): string {
    return new DeltaRedaction(search, suspects).#take(text, true);
  }

  #take(delta: string, isWhole: boolean): string {
    this.#text += delta;
    this.#stretches.clear();
    this.#stops.clear();
    for (const find of this.#finds) this.#grow(find, isWhole);

    const open = this.#questions;
    this.#questions = [];
    for (const question of open) this.#judge(question, isWhole);
    while (this.#search.advance(this.#cursor, this.#text)) {
      for (const rank of this.#search.found(this.#cursor)) {
        const found = Math.min(this.#suspects[rank]?.anchor.length ?? 0, ANCHOR_CHARS);
        this.#judge({ rank, start: this.#cursor.at - found }, isWhole);
      }
    }
    const certain = isWhole ? this.#text.length : this.#certainUpTo();
    const shown = this.#show(certain);
    this.#trim(certain);
    return shown;
  }

  #judge(question: Question, isWhole: boolean): void {
    const suspect = this.#suspects[question.rank];
    if (suspect === undefined) return;
    // A run inside a run that is already going adds nothing.
    if (suspect.isRun && suspect.tail !== undefined && this.#known(suspect.tail, question.start) !== undefined) return;
    const anchorEnd = literalEnd(suspect.anchor, this.#text, question.start, isWhole);
    const sighting = typeof anchorEnd === 'number' ? suspect.judge(this.#text, question.start, isWhole) : anchorEnd;
    if (sighting === 'more') this.#questions.push(question);
    else if (sighting !== undefined) {
      const find: Find = { rank: question.rank, ...sighting, tail: suspect.tail, isShown: false };
      this.#grow(find, isWhole);
      this.#finds.push(find);
    }
  }

  /** Lets a find take what its tail allows; a tail that has come to its end is taken off. */
  #grow(find: Find, isWhole: boolean): void {
    if (find.tail === undefined) return;
    const stretch = this.#stretch(find.tail, find.end, isWhole);
    find.end = stretch.end;
    if (stretch.isOver) find.tail = undefined;
  }

  #stretch(tail: Tail, start: number, isWhole: boolean): Stretch {
    const known = this.#known(tail, start);
    if (known !== undefined) return known;
    const stop = tail.until === undefined ? this.#text.length : this.#nextStop(tail.until, start);
    const end = runEnd(tail.of, this.#text, start, stop);
    const isOver = end < this.#text.length;
    const stretch = { start, end: isOver ? end : end - this.#undecided(tail, start, isWhole), isOver };
    this.#stretches.set(tail, stretch);
    return stretch;
  }

  #known(tail: Tail, at: number): Stretch | undefined {
    const stretch = this.#stretches.get(tail);
    return stretch !== undefined && stretch.start <= at && at <= stretch.end ? stretch : undefined;
  }

  /** Where the literal stands next, or the end of the text. */
  #nextStop(literal: string, from: number): number {
    const known = this.#stops.get(literal);
    if (known !== undefined && known.from <= from && from <= known.at) return known.at;
    const found = this.#text.indexOf(literal, from);
    const at = found < 0 ? this.#text.length : found;
    this.#stops.set(literal, { from, at });
    return at;
  }

  /** How much of a stretch that ends with the text could be the beginning of what stops it. */
  #undecided(tail: Tail, start: number, isWhole: boolean): number {
    if (tail.until === undefined || isWhole) return 0;
    return Math.min(this.#text.length - start, overlap(this.#text, tail.until));
  }

  /** No secret that is still unknown can begin before this. */
  #certainUpTo(): number {
    const anchor = this.#text.length - this.#search.depth(this.#cursor);
    return this.#questions.reduce((least, question) => Math.min(least, question.start), anchor);
  }

  #show(certain: number): string {
    const finds = this.#finds.sort((left, right) => left.start - right.start || left.rank - right.rank);
    let shown = '';
    for (const find of finds) {
      if (!find.isShown) {
        if (find.start >= certain) break;
        if (find.start > this.#disposed || (find.start === this.#disposed && !this.#isGap)) {
          shown += this.#text.slice(this.#disposed, find.start) + (this.#suspects[find.rank]?.label ?? '');
        }
        find.isShown = true;
      }
      this.#disposed = Math.max(this.#disposed, find.end);
      this.#isGap = true;
    }
    if (certain > this.#disposed) {
      shown += this.#text.slice(this.#disposed, certain);
      this.#disposed = certain;
      this.#isGap = false;
    }
    // All that still grow with the same tail grow together: one of them is enough.
    const growing = new Set<Tail | undefined>([undefined]);
    this.#finds = finds.filter((find) => !find.isShown || (!growing.has(find.tail) && growing.add(find.tail)));
    return shown;
  }

  #trim(certain: number): void {
    const cut = certain - CONTEXT_CHARS;
    if (cut < TRIM_CHARS) return;
    this.#text = this.#text.slice(cut);
    this.#disposed -= cut;
    this.#cursor.at -= cut;
    for (const question of this.#questions) question.start -= cut;
    for (const find of this.#finds) {
      find.start -= cut;
      find.end -= cut;
    }
  }
}

/** How many characters at the end of the text are the beginning of the literal. */
function overlap(text: string, literal: string): number {
  for (let length = literal.length - 1; length > 0; length--)
    if (text.endsWith(literal.slice(0, length))) return length;
  return 0;
}
