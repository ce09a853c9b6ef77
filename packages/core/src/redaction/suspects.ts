// Everything that may turn out to be a secret: where it would begin, and how to make sure.
//
// A suspect has an anchor, a literal that a search finds, and a judgement, which is asked wherever
// the anchor stands. There are three kinds: a shape in plain text, a shape inside base64, and an
// exact value in one of its forms. Each judgement depends on a bounded piece of text around the
// anchor and on nothing else, so it is the same whether the text comes whole or in pieces.

import { CONTEXT_SHAPES } from './context-shapes.ts';
import type { Shape, Sighting, Tail } from './pattern.ts';
import { BASE64_ANY, isAllowedAt, matchBody, PADDED, reachOf, runEnd } from './pattern.ts';
import { base64Core, base64Forms, bothAlphabets, isWorthHiding, plainForms } from './secret-values.ts';
import { TOKEN_SHAPES } from './token-shapes.ts';

export type Suspect = {
  readonly label: string;
  readonly anchor: string; // begins at `start`; searched for by its first ANCHOR_CHARS only
  readonly tail?: Tail;
  /** Asked where the whole anchor stands; `isWhole` says that nothing follows the text. */
  readonly judge: (text: string, start: number, isWhole: boolean) => Sighting;
};

/** How much of an anchor is searched for: more makes the search larger and hardly more selective. */
export const ANCHOR_CHARS = 6;

// A longer value is looked for in pieces, so that a stream never waits for the whole of it.
const PIECE_CHARS = 256;
const PIECE_CHARS_MIN = 8;
const BASE64_CONTEXT_CHARS = 64; // how far back base64 is decoded to see what stands before an anchor

const UNPRINTABLE_END = /[^\t\n\r\x20-\x7e][\s\S]{0,5}$/;

/** All suspects; where two claim the same text, the earlier one names it. */
export function suspectsFor(values: Iterable<string>): Suspect[] {
  const shapes = [...TOKEN_SHAPES, ...CONTEXT_SHAPES];
  const secrets = [...new Set(values)].filter(isWorthHiding);
  return [
    ...shapes.flatMap((shape) => shape.anchors.map((anchor) => inPlainText(shape, anchor))),
    ...shapes.flatMap((shape) => shape.anchors.flatMap((anchor) => inBase64(shape, anchor))),
    ...secrets.flatMap((secret) => plainForms(secret).flatMap((form) => exactly(form))),
    ...secrets.flatMap((secret) => base64Forms(secret).flatMap((form) => exactly(form, { of: PADDED }))),
  ];
}

function inPlainText(shape: Shape, anchor: string): Suspect {
  return {
    label: `[redacted:${shape.id}]`,
    anchor,
    ...(shape.tail === undefined ? {} : { tail: shape.tail }),
    judge: (text, start, isWhole) =>
      isAllowedAt(shape, text, start)
        ? matchBody(shape, text, { start, end: start + anchor.length }, isWhole)
        : undefined,
  };
}

/** One suspect for each place in a group of three bytes where the anchor may begin, and for each alphabet. */
function inBase64(shape: Shape, anchor: string): Suspect[] {
  const reachChars = Math.ceil((reachOf(shape) * 4) / 3) + 4;
  return [0, 1, 2].flatMap((shift) =>
    bothAlphabets(base64Core(anchor, shift)).map((core) => ({
      label: `[redacted:${shape.id}]`,
      anchor: core,
      tail: { of: PADDED },
      judge: (text: string, start: number, isWhole: boolean): Sighting => {
        const group = start - Math.ceil((shift * 8) / 6); // where the group of four characters begins
        const before = shape.after === undefined ? '' : decodeBefore(text, group, start, shift);
        if (!isAllowedAt(shape, before + anchor, before.length)) return undefined;

        const limit = Math.min(text.length, start + reachChars);
        const end = runEnd(BASE64_ANY, text, start, limit);
        const decoded = before + anchor + decodeAfter(text, { group, start, end }, shift + Buffer.byteLength(anchor));
        const isComplete = end < text.length || isWhole;
        const sighting = matchBody(
          shape,
          decoded,
          { start: before.length, end: before.length + anchor.length },
          isComplete,
        );
        return typeof sighting === 'object' ? { start, end } : sighting;
      },
    })),
  );
}

function exactly(form: string, tail?: Tail): Suspect[] {
  const pieces: string[] = [];
  for (let at = 0; at < form.length; at += PIECE_CHARS) pieces.push(form.slice(at, at + PIECE_CHARS));
  // A remainder too short to be looked for alone is found as the end of a whole piece.
  if (pieces.length > 1 && (pieces.at(-1)?.length ?? 0) < PIECE_CHARS_MIN)
    pieces.splice(-1, 1, form.slice(-PIECE_CHARS));
  return pieces.map((piece) => ({
    label: '[redacted:value]',
    anchor: piece,
    ...(tail === undefined ? {} : { tail }),
    judge: (_, start) => ({ start, end: start + piece.length }),
  }));
}

// Decodes whole groups of four characters only, backwards from the anchor's own group as far as base64 goes.
function decodeBefore(text: string, group: number, start: number, shift: number): string {
  if (group < 0 || runEnd(BASE64_ANY, text, group, start) < start) return '';
  let from = group;
  while (from >= 4 && group - from < BASE64_CONTEXT_CHARS && runEnd(BASE64_ANY, text, from - 4, from) === from)
    from -= 4;
  const before = decode(text.slice(from, start)).slice(0, ((group - from) / 4) * 3 + shift);
  // What decodes to no text was no base64, but a word glued to its front.
  return UNPRINTABLE_END.test(before) ? '' : before;
}

function decodeAfter(text: string, run: { group: number; start: number; end: number }, skipBytes: number): string {
  // The characters between the group's beginning and the anchor may be missing; the bytes they make are skipped anyway.
  return decode('A'.repeat(run.start - run.group) + text.slice(run.start, run.end)).slice(skipBytes);
}

function decode(base64: string): string {
  return Buffer.from(base64, 'base64').toString('latin1');
}
