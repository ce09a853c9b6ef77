// Everything that may turn out to be a secret: where it would begin, and how to make sure.
//
// A suspect has an anchor, a literal that a search finds, and a judgement, which is asked wherever
// the anchor stands. There are three kinds: a shape in plain text, a shape inside base64, and an
// exact value in one of its forms. Each judgement depends on a bounded piece of text around the
// anchor and on nothing else, so it is the same whether the text comes whole or in pieces.

import { base64Core, base64Forms, bothBase64Alphabets, decodeBase64Around } from './base64.ts';
import { CONTEXT_SHAPES } from './context-shapes.ts';
import {
  type Shape,
  type Sighting,
  type Tail,
  BASE64_ANY,
  isShapeAllowedAt,
  matchBody,
  PADDED,
  reachOfShape,
  runEnd,
  WRAPPED,
} from './pattern.ts';
import { isSecretWorthHiding, plainFormsOfSecret } from '../secret-values.ts';
import { TOKEN_SHAPES } from './token-shapes.ts';

export type Suspect = {
  readonly label: string;
  readonly anchor: string; // the literal at `start`; the search uses only its first ANCHOR_CHARS
  readonly tail?: Tail;
  readonly isRun: boolean; // the class of all characters of its tail
  /** Judges an occurrence of the whole anchor; `isWhole`: nothing follows the text. */
  readonly judge: (text: string, start: number, isWhole: boolean) => Sighting;
};

/** The searched length of an anchor: a longer one makes the search larger and hardly more selective. */
export const ANCHOR_CHARS = 6;

// A longer value is searched in pieces, so that a stream never waits for all of it.
const PIECE_CHARS = 256;
const PEEK_CHARS = 32; // base64 characters that are decoded first, to decide whether to decode more
const BASE64_CONTEXT_CHARS = 32; // base64 characters that are decoded before an anchor, for its context

const BASE64_TAIL: Tail = { of: PADDED };
const WRAPPED_TAIL: Tail = { of: WRAPPED };
const PRINTABLE = /^[\t\n\r\x20-\x7e]*$/; // random bytes rarely match
const GARBAGE_CHARS = 6; // characters before an anchor that must be text

export type Scope = 'values and shapes' | 'values only';

/**
 * Returns all suspects; of two with the same text, the earlier one names it. Values come first, so that a value has the
 * same name in the journal, which knows shapes, and in a request, which does not. A resumed session then sends the same
 * bytes.
 */
export function suspectShapes(values: Iterable<string>, scope: Scope): Suspect[] {
  const shapes = scope === 'values only' ? [] : [...TOKEN_SHAPES, ...CONTEXT_SHAPES];
  const secrets = [...new Set(values)].filter(isSecretWorthHiding);
  return [
    ...secrets.flatMap((secret) => plainFormsOfSecret(secret).flatMap((form) => exactSuspects(form))),
    ...secrets.flatMap((secret) => base64Forms(secret).flatMap((form) => exactSuspects(form, BASE64_TAIL))),
    ...shapes.flatMap((shape) => shape.anchors.map((anchor) => suspectsInPlainText(shape, anchor))),
    ...shapes.flatMap(suspectsInBase64),
  ];
}

function suspectsInPlainText(shape: Shape, anchor: string): Suspect {
  return {
    label: `[redacted:${shape.id}]`,
    anchor,
    ...(shape.tail === undefined ? {} : { tail: shape.tail }),
    isRun: false,
    judge: (text, start, isWhole) =>
      isShapeAllowedAt(shape, text, start)
        ? matchBody(shape, text, { start, end: start + anchor.length }, isWhole)
        : undefined,
  };
}

/** One suspect for each offset of an anchor within a group of three bytes, and for each alphabet. */
function suspectsInBase64(shape: Shape): Suspect[] {
  // The first line of a key in base64 counts as a key. Its rest may follow in further lines, which look like any other
  // base64.
  const isKey = shape.tail?.until !== undefined;
  const label = `[redacted:${shape.id}]`;
  const tail = isKey ? WRAPPED_TAIL : BASE64_TAIL;
  const reachChars = Math.ceil((reachOfShape(shape) * 4) / 3) + 4;
  const suspects: Suspect[] = [];
  for (const anchor of shape.anchors) {
    for (let shift = 0; shift < 3; shift++) {
      const judge = judgeBase64Suspect({ shape, anchor, shift, reachChars });
      for (const core of bothBase64Alphabets(base64Core(anchor, shift)))
        suspects.push({ label, anchor: core, tail, isRun: true, judge: isKey ? judgeLiteralSuspect(core) : judge });
    }
  }
  return suspects;
}

type Encoded = {
  readonly shape: Shape;
  readonly anchor: string;
  readonly shift: number; // bytes of its group that precede the anchor
  readonly reachChars: number;
};

function judgeBase64Suspect({ shape, anchor, shift, reachChars }: Encoded): Suspect['judge'] {
  return (text, start, isWhole) => {
    const group = start - Math.ceil((shift * 8) / 6); // start of the anchor's group of four characters
    const from = shape.after === undefined ? group : suspectContextStart(text, group, start);
    const at = ((group - from) / 4) * 3 + shift;
    // A short sample rules out most text that is not a secret.
    for (const chars of [PEEK_CHARS, reachChars]) {
      const end = runEnd(BASE64_ANY, text, start, Math.min(text.length, start + chars));
      const decoded = decodeBase64Around(text, { from, end }, { anchor, at });
      // If the result is not text, a word precedes it without a gap, and the encoded text starts at the anchor.
      const isAllowed = isSuspectGarbage(decoded, at)
        ? isShapeAllowedAt(shape, anchor, 0)
        : isShapeAllowedAt(shape, decoded, at);
      if (!isAllowed) return undefined;

      const isPeek = end === start + chars && chars < reachChars;
      const isComplete = !isPeek && (end < text.length || isWhole);
      const sighting = matchBody(shape, decoded, { start: at, end: at + anchor.length }, isComplete);
      if (sighting === undefined || (sighting === 'more' && !isPeek)) return sighting;
      if (sighting !== 'more') return PRINTABLE.test(decoded.slice(at, sighting.end)) ? { start, end } : undefined;
    }
    return undefined;
  };
}

function exactSuspects(form: string, tail?: Tail): Suspect[] {
  const pieces: string[] = [];
  for (let at = 0; at < form.length; at += PIECE_CHARS) pieces.push(form.slice(at, at + PIECE_CHARS));
  // The last piece may be short and common, so it is searched together with the text before it.
  if (pieces.length > 1) pieces.splice(-1, 1, form.slice(-PIECE_CHARS));
  return pieces.map((piece) => ({
    label: '[redacted:value]',
    anchor: piece,
    ...(tail === undefined ? {} : { tail }),
    isRun: tail !== undefined,
    judge: judgeLiteralSuspect(piece),
  }));
}

/** Every occurrence of the literal is a secret. */
function judgeLiteralSuspect(literal: string): Suspect['judge'] {
  return (_, start) => ({ start, end: start + literal.length });
}

/** Returns where the base64 before the anchor's group starts, in whole groups. */
function suspectContextStart(text: string, group: number, start: number): number {
  let from = group;
  if (group < 0 || runEnd(BASE64_ANY, text, group, start) < start) return from;
  while (from >= 4 && group - from < BASE64_CONTEXT_CHARS && runEnd(BASE64_ANY, text, from - 4, from) === from)
    from -= 4;
  return from;
}

function isSuspectGarbage(decoded: string, end: number): boolean {
  return end > 0 && !PRINTABLE.test(decoded.slice(Math.max(0, end - GARBAGE_CHARS), end));
}
