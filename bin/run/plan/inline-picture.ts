// The place on the terminal where a picture is drawn again and again, below everything written before.
//
// Guarantees
//   1. The cursor is below the picture between two writes, so a newline scrolls as usual.
//   2. Lines that did not change are not written again.

import {
  BEGIN,
  END,
  ERASE_BELOW,
  ERASE_LINE_END,
  HIDE_CURSOR,
  NO_WRAP,
  PictureScreen,
  SHOW_CURSOR,
  WRAP,
} from '../../terminal/picture-screen.ts';
import { cleanText, terminalColumns, widthOfText } from '../../views/text/terminal-text.ts';

export class InlinePicture extends PictureScreen {
  #columns = 0; // when they were drawn
  #isCursorHidden = false;

  draw(lines: readonly string[]): void {
    const cursor = this.#isCursorHidden ? '' : HIDE_CURSOR;
    this.#isCursorHidden = true;
    this.write(`${BEGIN}${cursor}${this.#top()}${this.#drawn(lines, this.lines)}${END}`);
  }

  /** Writes whole lines that stay, above the picture. */
  print(text: string): void {
    if (this.use !== 'picture') return this.write(text);
    this.write(`${BEGIN}${this.#top()}${ERASE_BELOW}${text}${this.#drawn(this.lines, [])}${END}`);
  }

  /** Removes the picture. Others may write whole lines at the cursor. */
  leave(): void {
    if (this.use !== 'picture') return;
    this.erase();
    this.use = 'others';
    this.giveBack();
  }

  /** Removes the picture. A terminal that became narrower has wrapped it, so it takes more rows. */
  erase(): void {
    if (this.use !== 'picture') return;
    const columns = terminalColumns(this.output);
    const rowsOf = (line: string): number => Math.max(1, Math.ceil(widthOfText(cleanText(line)) / columns));
    const wrapped = columns >= this.#columns ? 0 : this.lines.reduce((sum, line) => sum + rowsOf(line) - 1, 0);
    if (this.lines.length > 0) this.write(`${this.#top(wrapped)}${ERASE_BELOW}`);
    this.lines = [];
  }

  /** Leaves the drawn frame in place: the next one starts at the cursor. */
  moveOn(): void {
    this.lines = [];
    this.giveBack();
  }

  /** Leaves the picture where it is, for good. */
  close(): void {
    this.use = 'closed';
    this.giveBack();
    this.forgetExit();
  }

  #drawn(lines: readonly string[], before: readonly string[]): string {
    const text = lines.map((line, at) => (line === before[at] ? '\n' : `${ERASE_LINE_END}${line}\n`)).join('');
    this.lines = lines;
    this.#columns = terminalColumns(this.output);
    return `${NO_WRAP}${text}${WRAP}${lines.length < before.length ? ERASE_BELOW : ''}`;
  }

  #top(more = 0): string {
    const rows = this.lines.length + more;
    return rows === 0 ? '\r' : `\r\u001B[${rows}A`;
  }

  protected giveBack(): void {
    if (this.#isCursorHidden) this.write(SHOW_CURSOR);
    this.#isCursorHidden = false;
  }
}
