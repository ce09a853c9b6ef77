// Finds a thousand literals in a text: three characters say where one may begin, a comparison whether it does.
//
// Every three characters are one bit in a table. Hardly any three of them begin a literal, so a text is
// read at the price of a look-up per character; and where they do, few literals are there to compare
// with, so no input is much slower than another. A text that still streams may end within a literal: that
// place is found, too, and what follows it has to be held back.
//
// All characters beyond ASCII are the same to the table; the comparison tells them apart.
//
// The table is made before the first word is shown, so making it must cost next to nothing.

const CODE_BITS = 7;
const CODE_LAST = 127; // code of every character from '~' on; 0 means none
const GRAM_CHARS = 3; // every literal has at least this length
const GRAMS = 1 << (CODE_BITS * GRAM_CHARS);

type Entry = { readonly literal: string; readonly indexes: number[] };

export class AnchorSearch {
  // One bit per gram. Short beginnings of literals are included, padded with zeros.
  readonly #starts = new Int32Array(GRAMS / 32);
  readonly #entries = new Map<number, Entry[]>();

  constructor(literals: readonly string[]) {
    for (let index = 0; index < literals.length; index++) this.#add(literals[index]!, index);
  }

  /**
   * Returns where the next literal begins at or after `from`, else the end of the text. Unless `isWhole` is set, a
   * literal that the end cuts off counts too.
   */
  next(text: string, from: number, isWhole: boolean): number {
    const { length } = text;
    const last = length - GRAM_CHARS;
    let at = from;
    if (at <= last) {
      let gram = (codeAtAnchor(text, at) << CODE_BITS) | codeAtAnchor(text, at + 1);
      for (; at <= last; at++) {
        gram = ((gram << CODE_BITS) | codeAtAnchor(text, at + 2)) & (GRAMS - 1);
        if (this.#isStart(gram) && this.#isAt(text, at, gram, isWhole)) return at;
      }
    }
    if (isWhole) return length;
    for (; at < length; at++) if (this.#isStart(gramAtAnchor(text, at))) return at;
    return length;
  }

  /** Returns the literals (by index) that begin at a position; 'more' if the text ends too early to tell. */
  literalsAt(text: string, at: number, isWhole: boolean): readonly number[] | 'more' {
    const found: number[] = [];
    if (!isWhole && text.length - at < GRAM_CHARS) return this.#isStart(gramAtAnchor(text, at)) ? 'more' : found;
    for (const { literal, indexes } of this.#entries.get(gramAtAnchor(text, at)) ?? []) {
      if (text.startsWith(literal, at)) found.push(...indexes);
      else if (!isWhole && isAnchorCut(literal, text, at)) return 'more';
    }
    return found;
  }

  #isStart(gram: number): boolean {
    return (this.#starts[gram >> 5]! & (1 << gram)) !== 0;
  }

  #isAt(text: string, at: number, gram: number, isWhole: boolean): boolean {
    const entries = this.#entries.get(gram);
    if (entries === undefined) return false;
    for (const { literal } of entries)
      if (text.startsWith(literal, at) || (!isWhole && isAnchorCut(literal, text, at))) return true;
    return false;
  }

  #add(literal: string, index: number): void {
    if (literal.length < GRAM_CHARS) throw new Error(`'${literal}' is too short to be searched for`);
    const gram = gramAtAnchor(literal, 0);
    const entries = this.#entries.get(gram);
    const last = entries?.at(-1);
    if (entries === undefined) this.#entries.set(gram, [{ literal, indexes: [index] }]);
    else if (last?.literal === literal) last.indexes.push(index);
    else entries.push({ literal, indexes: [index] });
    for (let missing = 0; missing < GRAM_CHARS; missing++) {
      const start = (gram >> (CODE_BITS * missing)) << (CODE_BITS * missing);
      this.#starts[start >> 5]! |= 1 << start;
    }
  }
}

/** Returns true if the text ends within a literal that may begin there. */
function isAnchorCut(literal: string, text: string, at: number): boolean {
  return text.length - at < literal.length && literal.startsWith(text.slice(at));
}

function codeAtAnchor(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code < CODE_LAST ? code + 1 : CODE_LAST;
}

/** Three characters as a number, padded with zeros at the end of the text. */
function gramAtAnchor(text: string, at: number): number {
  let gram = 0;
  for (let place = at; place < at + GRAM_CHARS; place++)
    gram = (gram << CODE_BITS) | (place < text.length ? codeAtAnchor(text, place) : 0);
  return gram;
}
