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

import type { AnchorSearch } from './shapes/anchor-search.ts';
import { type Tail, CONTEXT_CHARS, literalEnd, runEnd } from './shapes/pattern.ts';
import type { Suspect } from './shapes/suspects.ts';

/** A bound that follows from the longest shape; a test checks it. */
export const HELD_CHARS_MAX = 512;

type Question = { readonly rank: number; start: number };
type Find = { readonly rank: number; start: number; end: number; tail: Tail | undefined; isShown: boolean };
type Stretch = { readonly start: number; readonly end: number; readonly isOver: boolean };

// Length of the kept past: more than any shape looks back, so that it is cut rarely.
const PAST_CHARS_MIN = CONTEXT_CHARS;
const PAST_CHARS_MAX = 1_024;

export class DeltaRedaction {
  readonly #search: AnchorSearch;
  readonly #suspects: readonly Suspect[];
  #past = ''; // end of the text already shown or dropped
  #isGap = false; // true if its last character was dropped
  #held = '';
  #unread = 0; // number of last characters that the search must read again
  #questions: Question[] = []; // anchors not judged yet
  #finds: Find[] = []; // finds by start; not shown yet, or still growing
  // While a piece is processed: the past, the held text, and the piece.
  #text = '';
  #disposed = 0; // shown or dropped up to here
  // Measured lengths are cached, so that many secrets in one run cost no more than one.
  readonly #stretches = new Map<Tail, Stretch>();
  readonly #stops = new Map<string, { readonly from: number; readonly at: number }>();

  constructor(search: AnchorSearch, suspects: readonly Suspect[]) {
    this.#search = search;
    this.#suspects = suspects;
  }

  /** Takes the next piece and returns the text that may be shown now. */
  push(delta: string): string {
    const isCalm = this.#questions.length === 0 && this.#finds.length === 0 && this.#unread === this.#held.length;
    return (isCalm ? this.#pass(delta) : undefined) ?? this.#take(delta, false);
  }

  /** Ends the text and returns the rest; the next piece begins a new text. */
  flush(): string {
    const shown = this.#take('', true);
    this.#past = '';
    this.#isGap = false;
    this.#held = '';
    this.#unread = 0;
    this.#questions = [];
    this.#finds = [];
    return shown;
  }

  /** Redacts a whole text. */
  static whole(text: string, search: AnchorSearch, suspects: readonly Suspect[]): string {
    return new DeltaRedaction(search, suspects).#take(text, true);
  }

  /**
   * Most pieces by far: where nothing is suspected yet, one without an anchor need not be looked at with all that is
   * before it.
   */
  #pass(delta: string): string | undefined {
    const text = this.#held + delta;
    const certain = this.#search.next(text, 0, false);
    if (certain < text.length && this.#search.literalsAt(text, certain, false) !== 'more') return undefined;
    const shown = text.slice(0, certain);
    this.#held = text.slice(certain);
    this.#unread = this.#held.length;
    if (shown === '') return shown;
    this.#past += shown;
    this.#isGap = false;
    if (this.#past.length > PAST_CHARS_MAX) this.#past = this.#past.slice(-PAST_CHARS_MIN);
    return shown;
  }

  #take(delta: string, isWhole: boolean): string {
    this.#disposed = this.#past.length;
    this.#text = this.#past + this.#held + delta;
    this.#stretches.clear();
    this.#stops.clear();
    for (const find of this.#finds) this.#grow(find, isWhole);

    const open = this.#questions;
    this.#questions = [];
    for (const question of open) this.#judge(question, isWhole);
    const read = this.#read(this.#text.length - delta.length - this.#unread, isWhole);
    const certain = this.#questions.reduce((least, question) => Math.min(least, question.start), read);
    const shown = this.#show(certain);
    this.#unread = this.#text.length - read;
    this.#trim(certain);
    return shown;
  }

  /** Judges all anchors from a position on, and returns the position up to which no further anchor can be. */
  #read(from: number, isWhole: boolean): number {
    const text = this.#text;
    let at = this.#search.next(text, from, isWhole);
    for (; at < text.length; at = this.#search.next(text, at + 1, isWhole)) {
      const ranks = this.#search.literalsAt(text, at, isWhole);
      if (ranks === 'more') break;
      for (const rank of ranks) this.#judge({ rank, start: at }, isWhole);
    }
    return at;
  }

  #judge(question: Question, isWhole: boolean): void {
    const suspect = this.#suspects[question.rank];
    if (suspect === undefined) return;
    // A run inside a run that is still growing adds nothing.
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

  /** Extends a find by its tail, and removes a tail that has ended. */
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

  /** The next position of the literal, or the end of the text. */
  #nextStop(literal: string, from: number): number {
    const known = this.#stops.get(literal);
    if (known !== undefined && known.from <= from && from <= known.at) return known.at;
    const found = this.#text.indexOf(literal, from);
    const at = found < 0 ? this.#text.length : found;
    this.#stops.set(literal, { from, at });
    return at;
  }

  /** Length of the text's end that may be the beginning of the tail's end mark. */
  #undecided(tail: Tail, start: number, isWhole: boolean): number {
    if (tail.until === undefined || isWhole) return 0;
    return Math.min(this.#text.length - start, overlapWithSecret(this.#text, tail.until));
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
    // Finds that grow with the same tail grow alike, so one of them is enough.
    const growing = new Set<Tail | undefined>([undefined]);
    this.#finds = finds.filter((find) => !find.isShown || (!growing.has(find.tail) && growing.add(find.tail)));
    return shown;
  }

  /** Keeps the text that may still be needed: held text, and the context of everything uncertain. */
  #trim(certain: number): void {
    const cut = Math.max(0, Math.min(certain, this.#disposed) - PAST_CHARS_MIN);
    this.#past = this.#text.slice(cut, this.#disposed);
    this.#held = this.#text.slice(this.#disposed);
    for (const question of this.#questions) question.start -= cut;
    for (const find of this.#finds) {
      find.start -= cut;
      find.end -= cut;
    }
  }
}

/** Number of characters at the end of the text that begin the literal. */
function overlapWithSecret(text: string, literal: string): number {
  for (let length = literal.length - 1; length > 0; length--)
    if (text.endsWith(literal.slice(0, length))) return length;
  return 0;
}
