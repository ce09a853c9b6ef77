// The shape of a secret as data, and the one function that matches it.
//
// A shape is a literal (the anchor) followed by pieces: literals and runs of characters from an alphabet. A run is
// greedy and never backtracks, so each character is read once. A match has three results: while text still streams,
// "not yet known" differs from "no", and only unknown text is held back.
//
// A run must not be able to swallow the start of the next piece, unless its length is fixed.

/** A character class: one flag per ASCII code, and a last flag for all other characters. */
export type Alphabet = Uint8Array;

export type Run = { readonly of: Alphabet; readonly min: number; readonly max: number };

/** The tail of a secret that is already certain: any number of characters, up to a literal if given. */
export type Tail = { readonly of: Alphabet; readonly until?: string };

export type Shape = {
  readonly id: string;
  readonly anchors: readonly string[]; // literals with which every secret of this shape begins
  readonly body: readonly (string | Run)[]; // what follows the anchor
  readonly after?: RegExp; // required text before the anchor: sticky, with lookbehinds of at most CONTEXT_CHARS
  readonly needs?: RegExp; // required content of the secret part
  readonly shown?: number; // number of pieces that stay readable with the anchor; if absent, the anchor is redacted too
  readonly closing?: string; // required text after the secret, which stays readable
  readonly tail?: Tail;
};

/** The position of the secret; undefined if there is none; 'more' if the text ends too early to tell. */
export type Sighting = { readonly start: number; readonly end: number } | 'more' | undefined;

/** The longest text that `after` may inspect backwards. */
export const CONTEXT_CHARS = 128;

const ASCII = 128;

export function shapeAlphabet(member: RegExp): Alphabet {
  const flags = new Uint8Array(ASCII + 1);
  for (let code = 0; code < ASCII; code++) flags[code] = member.test(String.fromCharCode(code)) ? 1 : 0;
  flags[ASCII] = member.test('\u00e9') ? 1 : 0;
  return flags;
}

export const HEX = shapeAlphabet(/[0-9a-f]/);
export const ALNUM = shapeAlphabet(/[A-Za-z0-9]/);
export const UPPER = shapeAlphabet(/[A-Z0-9]/);
export const WORD = shapeAlphabet(/[\w-]/); // including URL-safe base64
export const DOTTED = shapeAlphabet(/[\w.-]/);
export const BASE64 = shapeAlphabet(/[A-Za-z0-9+/]/);
export const BASE64_ANY = shapeAlphabet(/[\w+/-]/); // base64 in both alphabets
export const PADDED = shapeAlphabet(/[\w+/=-]/); // base64 in both alphabets, with padding
export const WRAPPED = shapeAlphabet(/[\w+/=\r\n-]/); // base64 with line breaks

function isShapeMember(of: Alphabet, code: number): boolean {
  return of[code < ASCII ? code : ASCII] === 1;
}

/** Returns the end of the run of matching characters that begins at `from`, at most `limit`. */
export function runEnd(of: Alphabet, text: string, from: number, limit: number): number {
  let at = from;
  while (at < limit && isShapeMember(of, text.charCodeAt(at))) at++;
  return at;
}

/** Returns true if the shape allows the anchor at `start`, by the text before it. */
export function isShapeAllowedAt(shape: Shape, text: string, start: number): boolean {
  if (shape.after === undefined) return true;
  shape.after.lastIndex = start;
  return shape.after.test(text);
}

/** Matches the shape at its anchor; `isWhole`: nothing follows the text. */
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

/** The longest text needed to decide. */
export function reachOfShape(shape: Shape): number {
  const body = shape.body.reduce((sum, piece) => sum + (typeof piece === 'string' ? piece.length : piece.max), 0);
  return Math.max(...shape.anchors.map((anchor) => anchor.length)) + body + (shape.closing?.length ?? 0);
}

/** Returns the end of a literal expected at `at`. */
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
