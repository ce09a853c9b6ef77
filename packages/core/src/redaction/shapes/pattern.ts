// The shape of a secret as data, and the one function that matches it.
//
// A shape is a literal (the anchor) followed by pieces: literals and runs of characters from an alphabet. A run is
// greedy and never backtracks, so each character is read once. A match has three results: while text still streams,
// "not yet known" differs from "no", and only unknown text is held back.
//
// A run must not be able to swallow the start of the next piece, unless its length is fixed.

/** Which characters belong: one flag per ASCII code, and a last one for everything above. */
export type Alphabet = Uint8Array;

export type Run = { readonly of: Alphabet; readonly min: number; readonly max: number };

/** The rest of a certain secret: any number of characters, up to a literal if given. */
export type Tail = { readonly of: Alphabet; readonly until?: string };

export type Shape = {
  readonly id: string;
  readonly anchors: readonly string[]; // every secret of this shape begins with one of them
  readonly body: readonly (string | Run)[]; // what follows the anchor
  readonly after?: RegExp; // what must stand before the anchor: sticky, and made of lookbehinds of at most CONTEXT_CHARS
  readonly needs?: RegExp; // what the secret part must contain
  readonly shown?: number; // how many pieces stay readable with the anchor; absent: the anchor goes too
  readonly closing?: string; // what must follow, and stays
  readonly tail?: Tail;
};

/** Where the secret stands; undefined: it is none; 'more': the text ends too early to tell. */
export type Sighting = { readonly start: number; readonly end: number } | 'more' | undefined;

/** How far back `after` may look. */
export const CONTEXT_CHARS = 128;

const ASCII = 128;

export function alphabet(member: RegExp): Alphabet {
  const flags = new Uint8Array(ASCII + 1);
  for (let code = 0; code < ASCII; code++) flags[code] = member.test(String.fromCharCode(code)) ? 1 : 0;
  flags[ASCII] = member.test('\u00e9') ? 1 : 0;
  return flags;
}

export const HEX = alphabet(/[0-9a-f]/);
export const ALNUM = alphabet(/[A-Za-z0-9]/);
export const UPPER = alphabet(/[A-Z0-9]/);
export const WORD = alphabet(/[\w-]/); // also base64 as it is written in addresses
export const DOTTED = alphabet(/[\w.-]/);
export const BASE64 = alphabet(/[A-Za-z0-9+/]/);
export const BASE64_ANY = alphabet(/[\w+/-]/); // both alphabets
export const PADDED = alphabet(/[\w+/=-]/); // both alphabets, to the very end
export const WRAPPED = alphabet(/[\w+/=\r\n-]/); // the same, in lines

function isMember(of: Alphabet, code: number): boolean {
  return of[code < ASCII ? code : ASCII] === 1;
}

/** Where the run that begins at `from` ends, looking no further than `limit`. */
export function runEnd(of: Alphabet, text: string, from: number, limit: number): number {
  let at = from;
  while (at < limit && isMember(of, text.charCodeAt(at))) at++;
  return at;
}

/** Whether the anchor at `start` stands where the shape allows it. */
export function isAllowedAt(shape: Shape, text: string, start: number): boolean {
  if (shape.after === undefined) return true;
  shape.after.lastIndex = start;
  return shape.after.test(text);
}

/** Recognises the shape that has its anchor there; `isWhole` says that nothing follows the text. */
export function matchBody(
  shape: Shape,
  text: string,
  anchor: { start: number; end: number },
  isWhole: boolean,
): Sighting {
  let at = anchor.end;
  let start = shape.shown === 0 ? at : anchor.start;
  for (const [index, piece] of shape.body.entries()) {
    const next =
      typeof piece === 'string' ? literalEnd(piece, text, at, isWhole) : bodyRunEnd(piece, text, at, isWhole);
    if (typeof next !== 'number') return next;
    at = next;
    if (index + 1 === shape.shown) start = at;
  }
  const closed = shape.closing === undefined ? at : literalEnd(shape.closing, text, at, isWhole);
  if (typeof closed !== 'number') return closed;
  if (shape.needs !== undefined && !shape.needs.test(text.slice(start, at))) return undefined;
  return { start, end: at };
}

/** The longest text that can be needed to tell. */
export function reachOf(shape: Shape): number {
  const body = shape.body.reduce((sum, piece) => sum + (typeof piece === 'string' ? piece.length : piece.max), 0);
  return Math.max(...shape.anchors.map((anchor) => anchor.length)) + body + (shape.closing?.length ?? 0);
}

/** Where a literal expected at `at` ends. */
export function literalEnd(literal: string, text: string, at: number, isWhole: boolean): number | 'more' | undefined {
  if (text.startsWith(literal, at)) return at + literal.length;
  const isCut = !isWhole && text.length - at < literal.length && literal.startsWith(text.slice(at));
  return isCut ? 'more' : undefined;
}

function bodyRunEnd(run: Run, text: string, at: number, isWhole: boolean): number | 'more' | undefined {
  const end = runEnd(run.of, text, at, Math.min(text.length, at + run.max));
  if (!isWhole && end === text.length && end - at < run.max) return 'more';
  return end - at < run.min ? undefined : end;
}
