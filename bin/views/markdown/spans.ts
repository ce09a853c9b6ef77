// Spans: pieces of text with a look, broken into rows of a terminal and painted.
//
// Guarantees
//   1. The text of a span holds no control characters: every text passes `clean` when the span is made.
//   2. A row is never wider than asked, except a single character that is wider.

import { cleanText, widthOfText } from '../text/terminal-text.ts';
import type { Style } from '../text/style.ts';
import { terminalLink } from './links.ts';

type Format =
  | 'bold'
  | 'italic'
  | 'underline'
  | 'strikethrough'
  | 'dim'
  | 'cyan'
  | 'blue'
  | 'green'
  | 'red'
  | 'yellow'
  | 'magenta';

export type Looks = {
  readonly style: Style;
  readonly isColoured: boolean;
  readonly isAscii: boolean;
  /** The terminal makes links of OSC 8 sequences. */
  readonly hasLinks: boolean;
};

export type Span = { readonly text: string; readonly formats: readonly Format[]; readonly href?: string };

export type Row = readonly Span[];

export function markdownSpan(text: string, formats: readonly Format[] = [], href?: string): Span {
  return { text: cleanText(text), formats, ...(href !== undefined && { href }) };
}

export function paintMarkdownRow(row: Row, looks: Looks): string {
  return row
    .map(({ text, formats, href }) => {
      const painted = formats.length === 0 ? text : looks.style([...formats], text);
      return href !== undefined && looks.hasLinks ? terminalLink(painted, href) : painted;
    })
    .join('');
}

export function widthOfMarkdownRow(row: Row): number {
  return row.reduce((sum, { text }) => sum + widthOfText(text), 0);
}

type Word = { readonly spans: Span[]; width: number; readonly gap: Span | undefined };

/** Breaks spans between words, and words that no row can hold anywhere. A newline always breaks. */
export function wrapMarkdownSpans(spans: readonly Span[], columns: number): readonly Row[] {
  const rows: Row[] = [];
  for (const line of markdownSpanLines(spans)) {
    let row: Span[] = [];
    let width = 0;
    for (const word of markdownSpanWords(line).flatMap((each) => splitMarkdownWord(each, columns))) {
      const gap = row.length === 0 || word.gap === undefined ? 0 : widthOfText(word.gap.text);
      if (row.length > 0 && width + gap + word.width > columns) {
        rows.push(row);
        row = [];
        width = 0;
      }
      if (row.length > 0 && word.gap !== undefined) row.push(word.gap);
      width += row.length > 0 ? gap + word.width : word.width;
      row.push(...word.spans);
    }
    rows.push(row);
  }
  return rows;
}

function markdownSpanLines(spans: readonly Span[]): readonly (readonly Span[])[] {
  const lines: Span[][] = [[]];
  for (const each of spans)
    each.text.split('\n').forEach((text, at) => {
      if (at > 0) lines.push([]);
      if (text !== '') lines.at(-1)?.push({ ...each, text });
    });
  return lines;
}

// Wide characters, such as Chinese ones, may be broken anywhere.
const PIECES = /[ \t]+|[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF60]|[^ \t]/gu;

function markdownSpanWords(spans: readonly Span[]): readonly Word[] {
  const words: Word[] = [];
  let gap: Span | undefined;
  let isOpen = false;
  for (const each of spans) {
    const pieces = each.text.match(/[ \t]+|[^ \t]+/g) ?? [];
    for (const piece of pieces) {
      if (/^[ \t]/.test(piece)) {
        gap = { ...each, text: piece.replaceAll('\t', '  ') };
        isOpen = false;
        continue;
      }
      const last = words.at(-1);
      const width = widthOfText(piece);
      if (isOpen && last !== undefined) {
        last.spans.push({ ...each, text: piece });
        last.width += width;
      } else words.push({ spans: [{ ...each, text: piece }], width, gap });
      isOpen = true;
      gap = undefined;
    }
  }
  return words;
}

/** Splits a word that is too wide, or that holds wide characters, into pieces that fit. */
function splitMarkdownWord(word: Word, columns: number): readonly Word[] {
  const isWide = word.spans.some(({ text }) => widthOfText(text) > text.length);
  if (word.width <= columns && !isWide) return [word];
  const pieces: Word[] = [];
  let { gap } = word;
  for (const each of word.spans) {
    for (const text of each.text.match(PIECES) ?? []) {
      const width = widthOfText(text);
      const last = pieces.at(-1);
      const joins = last !== undefined && last.width + width <= columns && !(width === 2 && isWide);
      if (joins) {
        const end = last.spans.at(-1);
        if (end !== undefined && end.formats === each.formats && end.href === each.href)
          last.spans[last.spans.length - 1] = { ...end, text: end.text + text };
        else last.spans.push({ ...each, text });
        last.width += width;
      } else pieces.push({ spans: [{ ...each, text }], width, gap });
      gap = undefined;
    }
  }
  return pieces;
}
