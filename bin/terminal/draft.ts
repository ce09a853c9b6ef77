// A text while the user types it, and the editing keys of a shell. Knows no screen.

import type { Key } from './keyboard.ts';

/** `at`: index of the character behind the cursor. */
export type Draft = { readonly text: string; readonly at: number };

export const EMPTY: Draft = { text: '', at: 0 };

export function draftOf(text: string): Draft {
  return { text, at: text.length };
}

export function inserted({ text, at }: Draft, piece: string): Draft {
  return { text: text.slice(0, at) + piece + text.slice(at), at: at + piece.length };
}

/** Turns a `\` at the end of the line into a line break; undefined if there is none. */
export function continued({ text, at }: Draft): Draft | undefined {
  if (!text.slice(0, at).endsWith('\\') || !/^(\n|$)/.test(text.slice(at))) return undefined;
  return { text: `${text.slice(0, at - 1)}\n${text.slice(at)}`, at };
}

/** The draft after a key; undefined if the key does not edit. */
export function edited(draft: Draft, { name, ctrl, meta, text }: Key): Draft | undefined {
  if (text !== '') return inserted(draft, text);
  const move = MOVES[moveName(name, ctrl, meta)];
  if (move !== undefined) return { ...draft, at: move(draft) };
  const reach = REMOVALS[removalName(name, ctrl, meta)];
  if (reach === undefined) return undefined;
  const [from, to] = [draft.at, reach(draft)].sort((a, b) => a - b) as [number, number];
  return { text: draft.text.slice(0, from) + draft.text.slice(to), at: from };
}

type Reach = (draft: Draft) => number;

const before: Reach = ({ text, at }) => at - (graphemes(text.slice(0, at)).at(-1)?.length ?? 0);
const behind: Reach = ({ text, at }) => at + (graphemes(text.slice(at))[0]?.length ?? 0);
const wordBefore: Reach = ({ text, at }) => text.slice(0, at).search(/\S*\s*$/);
const wordBehind: Reach = ({ text, at }) => at + (/^\s*\S*/.exec(text.slice(at))?.[0].length ?? 0);
const lineStart: Reach = ({ text, at }) => text.lastIndexOf('\n', at - 1) + 1;
const lineEnd: Reach = ({ text, at }) => (text.indexOf('\n', at) < 0 ? text.length : text.indexOf('\n', at));

const MOVES: Readonly<Record<string, Reach>> = {
  left: before,
  'ctrl-b': before,
  right: behind,
  'ctrl-f': behind,
  'word-left': wordBefore,
  'word-right': wordBehind,
  home: lineStart,
  'ctrl-a': lineStart,
  end: lineEnd,
  'ctrl-e': lineEnd,
};

const REMOVALS: Readonly<Record<string, Reach>> = {
  backspace: before,
  'ctrl-h': before,
  delete: behind,
  'ctrl-d': behind,
  'ctrl-w': wordBefore,
  'meta-backspace': wordBefore,
  'meta-d': wordBehind,
  'ctrl-u': lineStart,
  'ctrl-k': lineEnd,
};

function moveName(name: string, ctrl: boolean, meta: boolean): string {
  if (ctrl || meta) {
    if (name === 'left' || (meta && name === 'b')) return 'word-left';
    if (name === 'right' || (meta && name === 'f')) return 'word-right';
  }
  return removalName(name, ctrl, meta);
}

function removalName(name: string, ctrl: boolean, meta: boolean): string {
  return `${ctrl ? 'ctrl-' : meta ? 'meta-' : ''}${name}`;
}

/** Moves the cursor one line up or down; undefined at the first or last line. */
export function lineAway({ text, at }: Draft, direction: 'up' | 'down'): Draft | undefined {
  const start = lineStart({ text, at });
  const column = at - start;
  if (direction === 'up') {
    if (start === 0) return undefined;
    const above = lineStart({ text, at: start - 1 });
    return { text, at: Math.min(above + column, start - 1) };
  }
  const end = lineEnd({ text, at });
  if (end === text.length) return undefined;
  return { text, at: Math.min(end + 1 + column, lineEnd({ text, at: end + 1 })) };
}

let segmenter: Intl.Segmenter | undefined;

/** Splits a text into user-perceived characters. */
export function graphemes(text: string): readonly string[] {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return [...segmenter.segment(text)].map(({ segment }) => segment);
}
