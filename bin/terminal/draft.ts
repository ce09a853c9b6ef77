// A text while the user types it, and the editing keys of a shell. Knows no screen.

import type { Key } from './keyboard.ts';

/** `at`: index of the character behind the cursor. */
export type Draft = { readonly text: string; readonly at: number };

export const EMPTY: Draft = { text: '', at: 0 };

export function newDraft(text: string): Draft {
  return { text, at: text.length };
}

export function insertIntoDraft({ text, at }: Draft, piece: string): Draft {
  return { text: text.slice(0, at) + piece + text.slice(at), at: at + piece.length };
}

/** Turns a `\` at the end of the line into a line break; undefined if there is none. */
export function continueDraftLine({ text, at }: Draft): Draft | undefined {
  if (!text.slice(0, at).endsWith('\\') || !/^(\n|$)/.test(text.slice(at))) return undefined;
  return { text: `${text.slice(0, at - 1)}\n${text.slice(at)}`, at };
}

/** The draft after a key; undefined if the key does not edit. */
export function editDraft(draft: Draft, { name, ctrl, meta, text }: Key): Draft | undefined {
  if (text !== '') return insertIntoDraft(draft, text);
  const move = MOVES[draftMoveName(name, ctrl, meta)];
  if (move !== undefined) return { ...draft, at: move(draft) };
  const reach = REMOVALS[draftRemovalName(name, ctrl, meta)];
  if (reach === undefined) return undefined;
  const [from, to] = [draft.at, reach(draft)].sort((a, b) => a - b) as [number, number];
  return { text: draft.text.slice(0, from) + draft.text.slice(to), at: from };
}

type Reach = (draft: Draft) => number;

const beforeCursor: Reach = ({ text, at }) => at - (graphemes(text.slice(0, at)).at(-1)?.length ?? 0);
const behindCursor: Reach = ({ text, at }) => at + (graphemes(text.slice(at))[0]?.length ?? 0);
const wordBeforeCursor: Reach = ({ text, at }) => text.slice(0, at).search(/\S*\s*$/);
const wordBehindCursor: Reach = ({ text, at }) => at + (/^\s*\S*/.exec(text.slice(at))?.[0].length ?? 0);
const draftLineStart: Reach = ({ text, at }) => text.lastIndexOf('\n', at - 1) + 1;
const draftLineEnd: Reach = ({ text, at }) => (text.indexOf('\n', at) < 0 ? text.length : text.indexOf('\n', at));

const MOVES: Readonly<Record<string, Reach>> = {
  left: beforeCursor,
  'ctrl-b': beforeCursor,
  right: behindCursor,
  'ctrl-f': behindCursor,
  'word-left': wordBeforeCursor,
  'word-right': wordBehindCursor,
  home: draftLineStart,
  'ctrl-a': draftLineStart,
  end: draftLineEnd,
  'ctrl-e': draftLineEnd,
};

const REMOVALS: Readonly<Record<string, Reach>> = {
  backspace: beforeCursor,
  'ctrl-h': beforeCursor,
  delete: behindCursor,
  'ctrl-d': behindCursor,
  'ctrl-w': wordBeforeCursor,
  'meta-backspace': wordBeforeCursor,
  'meta-d': wordBehindCursor,
  'ctrl-u': draftLineStart,
  'ctrl-k': draftLineEnd,
};

function draftMoveName(name: string, ctrl: boolean, meta: boolean): string {
  if (ctrl || meta) {
    if (name === 'left' || (meta && name === 'b')) return 'word-left';
    if (name === 'right' || (meta && name === 'f')) return 'word-right';
  }
  return draftRemovalName(name, ctrl, meta);
}

function draftRemovalName(name: string, ctrl: boolean, meta: boolean): string {
  return `${ctrl ? 'ctrl-' : meta ? 'meta-' : ''}${name}`;
}

/** Moves the cursor one line up or down; undefined at the first or last line. */
export function draftLineAway({ text, at }: Draft, direction: 'up' | 'down'): Draft | undefined {
  const start = draftLineStart({ text, at });
  const column = at - start;
  if (direction === 'up') {
    if (start === 0) return undefined;
    const above = draftLineStart({ text, at: start - 1 });
    return { text, at: Math.min(above + column, start - 1) };
  }
  const end = draftLineEnd({ text, at });
  if (end === text.length) return undefined;
  return { text, at: Math.min(end + 1 + column, draftLineEnd({ text, at: end + 1 })) };
}

let segmenter: Intl.Segmenter | undefined;

/** Splits a text into user-perceived characters. */
export function graphemes(text: string): readonly string[] {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return [...segmenter.segment(text)].map(({ segment }) => segment);
}
