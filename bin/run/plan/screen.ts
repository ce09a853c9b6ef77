// The place on the terminal where a picture is drawn again and again, below everything written before.
//
// Guarantees
//   1. The cursor is below the picture between two writes, so a newline scrolls as usual.
//   2. Lines that did not change are not written again.
//   3. Nothing is written to an output that is gone.

import { type Io, isOutputGone, type Output } from '../../io.ts';
import { cleanText, terminalColumns, widthOfText } from '../../views/text/terminal-text.ts';

const HIDE_CURSOR = '\u001B[?25l';
const SHOW_CURSOR = '\u001B[?25h';
// Drawn at once where the terminal can do that.
const BEGIN = '\u001B[?2026h';
const END = '\u001B[?2026l';
// A line that the terminal takes for wider than we do is cut.
const NO_WRAP = '\u001B[?7l';
const WRAP = '\u001B[?7h';
const ERASE_LINE_END = '\u001B[K';
const ERASE_BELOW = '\u001B[J';

export class Screen {
  readonly #output: Output;
  readonly #forgetExit: () => void;
  #lines: readonly string[] = [];
  #columns = 0; // when they were drawn
  #use: 'picture' | 'others' | 'closed' = 'picture';
  #isCursorHidden = false;

  constructor({ stdout, job }: Pick<Io, 'stdout' | 'job'>) {
    this.#output = stdout;
    this.#forgetExit = job?.onExit(() => this.#showCursor()) ?? (() => undefined);
  }

  /** Whether a picture may be drawn now. A terminal that is slow to read gets no more. */
  get isFree(): boolean {
    return this.#use === 'picture' && !this.#output.writableNeedDrain;
  }

  /** Whether no picture is on it. */
  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  draw(lines: readonly string[]): void {
    const cursor = this.#isCursorHidden ? '' : HIDE_CURSOR;
    this.#isCursorHidden = true;
    this.#write(`${BEGIN}${cursor}${this.#top()}${this.#drawn(lines, this.#lines)}${END}`);
  }

  /** Writes whole lines that stay, above the picture. */
  print(text: string): void {
    if (this.#use !== 'picture') return this.#write(text);
    this.#write(`${BEGIN}${this.#top()}${ERASE_BELOW}${text}${this.#drawn(this.#lines, [])}${END}`);
  }

  /** Removes the picture. Others may write whole lines at the cursor. */
  leave(): void {
    if (this.#use !== 'picture') return;
    this.erase();
    this.#use = 'others';
    this.#showCursor();
  }

  /** The cursor is at the start of a line; the next picture begins there. */
  comeBack(): void {
    if (this.#use === 'others') this.#use = 'picture';
  }

  /** Removes the picture. A terminal that became narrower has wrapped it, so it takes more rows. */
  erase(): void {
    if (this.#use !== 'picture') return;
    const columns = terminalColumns(this.#output);
    const rowsOf = (line: string): number => Math.max(1, Math.ceil(widthOfText(cleanText(line)) / columns));
    const wrapped = columns >= this.#columns ? 0 : this.#lines.reduce((sum, line) => sum + rowsOf(line) - 1, 0);
    if (this.#lines.length > 0) this.#write(`${this.#top(wrapped)}${ERASE_BELOW}`);
    this.#lines = [];
  }

  /** Leaves the drawn frame in place: the next one starts at the cursor. */
  moveOn(): void {
    this.#lines = [];
    this.#showCursor();
  }

  /** Leaves the picture where it is, for good. */
  close(): void {
    this.#use = 'closed';
    this.#showCursor();
    this.#forgetExit();
  }

  #drawn(lines: readonly string[], before: readonly string[]): string {
    const text = lines.map((line, at) => (line === before[at] ? '\n' : `${line}${ERASE_LINE_END}\n`)).join('');
    this.#lines = lines;
    this.#columns = terminalColumns(this.#output);
    return `${NO_WRAP}${text}${WRAP}${lines.length < before.length ? ERASE_BELOW : ''}`;
  }

  #top(more = 0): string {
    const rows = this.#lines.length + more;
    return rows === 0 ? '\r' : `\r\u001B[${rows}A`;
  }

  #showCursor(): void {
    if (this.#isCursorHidden) this.#write(SHOW_CURSOR);
    this.#isCursorHidden = false;
  }

  #write(text: string): void {
    if (!isOutputGone(this.#output)) this.#output.write(text);
  }
}
