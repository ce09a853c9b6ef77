// A draft as rows of the screen, with the place of the cursor.
//
// This file breaks the rows, not the terminal, so the position of the cursor is always known.

import { cleanText, widthOfText } from '../views/text/terminal-text.ts';
import { type Draft, graphemes } from './draft.ts';

const TAB = '  ';

/** Rows at the bottom, each at most as wide as the screen, and the place of the cursor in them. */
export type Footer = { readonly rows: readonly string[]; readonly row: number; readonly column: number };

/** `prompt`: without colour. */
export function draftRows({ text, at }: Draft, prompt: string, columns: number): Footer {
  // Keep the last column free: after a character there, the cursor position depends on the terminal.
  const room = columns - 1;
  const indent = ' '.repeat(widthOfText(prompt));
  const rows = [prompt];
  let width = indent.length;
  let offset = 0;
  let cursor: Pick<Footer, 'row' | 'column'> | undefined;
  for (const grapheme of graphemes(text)) {
    if (offset >= at) cursor ??= { row: rows.length - 1, column: width };
    offset += grapheme.length;
    const shown = grapheme === '\t' ? TAB : grapheme === '\n' ? '' : cleanText(grapheme);
    const wide = grapheme === '\t' ? TAB.length : shown === '' ? 0 : widthOfText(shown);
    if (grapheme === '\n' || width + wide > room) {
      rows.push(indent);
      width = indent.length;
    }
    rows[rows.length - 1] += shown;
    width += wide;
  }
  return { rows, ...(cursor ?? { row: rows.length - 1, column: width }) };
}

/** The rows around the cursor that fit into a height. */
export function visibleDraftRows({ rows, row, column }: Footer, height: number): Footer {
  const from = Math.min(Math.max(0, row - height + 1), Math.max(0, rows.length - height));
  return { rows: rows.slice(from, from + height), row: row - from, column };
}
