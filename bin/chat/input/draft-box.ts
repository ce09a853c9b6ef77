// A draft on the screen. Every key repaints it in place, over as many rows as it needs.
//
// This file breaks the rows, not the terminal, so the position of the cursor is always known. Text that does not
// fit on the screen scrolls inside the box.

import type { Output } from '../../io.ts';
import { clean, columnsOf, cut, widthOfText } from '../../views/text/terminal-text.ts';
import { type Draft, graphemes } from './draft.ts';

const ROWS_DEFAULT = 24;
const TAB = '  ';

export type Looks = {
  readonly prompt: string; // without colour
  readonly paint: (prompt: string) => string;
  /** One dim line below the draft. */
  readonly note: string;
  readonly dim: (text: string) => string;
};

export class DraftBox {
  readonly #output: Output;
  /** The painted rows down to the cursor, and the cursor's column in the last one. */
  #painted: { readonly rows: readonly string[]; readonly column: number } | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  paint(draft: Draft, looks: Looks): void {
    const { rows, row, column } = this.#laidOut(draft, looks.prompt);
    const room = Math.max((this.#output.rows ?? ROWS_DEFAULT) - 1 - (looks.note === '' ? 0 : 1), 1);
    const from = Math.min(Math.max(0, row - room + 1), Math.max(0, rows.length - room));
    const seen = rows.slice(from, from + room).map((text, at) => (from + at === 0 ? painted(text, looks) : text));
    const note = looks.note === '' ? [] : [looks.dim(cut(looks.note, columnsOf(this.#output) - 1))];
    const below = seen.length + note.length - 1 - (row - from);
    this.#output.write(
      `${this.#home()}${[...seen, ...note].join('\n')}${up(below)}\r${column > 0 ? `\u001B[${column}C` : ''}`,
    );
    this.#painted = { rows: rows.slice(from, row + 1), column };
  }

  /** Paints the whole draft a last time. Later output begins below it. */
  leave(draft: Draft, looks: Looks): void {
    const { rows } = this.#laidOut(draft, looks.prompt);
    const whole = rows.map((text, at) => (at === 0 ? painted(text, looks) : text));
    this.#output.write(`${this.#home()}${whole.join('\n')}\n`);
    this.#painted = undefined;
  }

  erase(): void {
    this.#output.write(this.#home());
    this.#painted = undefined;
  }

  /** Escape codes that move to the start of the box and clear everything after it. */
  #home(): string {
    if (this.#painted === undefined) return '';
    const { rows, column } = this.#painted;
    // A terminal that became narrower has wrapped the rows again.
    const columns = columnsOf(this.#output);
    const above = rows.slice(0, -1).map((row) => Math.max(Math.ceil(widthOfText(row) / columns), 1));
    const inside = Math.floor(column / columns);
    return `${up(above.reduce((sum, each) => sum + each, inside))}\r\u001B[J`;
  }

  #laidOut({ text, at }: Draft, prompt: string) {
    // Keep the last column free: after a character there, the cursor position depends on the terminal.
    const columns = columnsOf(this.#output) - 1;
    const indent = ' '.repeat(widthOfText(prompt));
    const rows = [prompt];
    let width = indent.length;
    let offset = 0;
    let cursor: { readonly row: number; readonly column: number } | undefined;
    for (const grapheme of graphemes(text)) {
      if (offset >= at) cursor ??= { row: rows.length - 1, column: width };
      offset += grapheme.length;
      const shown = grapheme === '\t' ? TAB : grapheme === '\n' ? '' : clean(grapheme);
      const wide = grapheme === '\t' ? TAB.length : shown === '' ? 0 : widthOfText(shown);
      if (grapheme === '\n' || width + wide > columns) {
        rows.push(indent);
        width = indent.length;
      }
      rows[rows.length - 1] += shown;
      width += wide;
    }
    return { rows, ...(cursor ?? { row: rows.length - 1, column: width }) };
  }
}

function painted(row: string, { prompt, paint }: Looks): string {
  return paint(prompt) + row.slice(prompt.length);
}

function up(rows: number): string {
  return rows > 0 ? `\u001B[${rows}A` : '';
}
