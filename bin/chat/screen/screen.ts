// The screen of a chat: text that stays, and below it a region that is painted again and again.
//
// Guarantees
//   1. Text that stays is written once, above the region, and scrolls away as in any terminal.
//   2. The region is never higher than the screen: its live rows lose their upper part first.
//   3. Each paint is one write, between the marks of a synchronized update.

import { Writable } from 'node:stream';
import { isOutputGone, type Output } from '../../io.ts';
import type { Footer } from '../../terminal/draft-rows.ts';
import { terminalColumns, widthOfText } from '../../views/text/terminal-text.ts';

const ROWS_DEFAULT = 24;
const FRAME_MS = 40;
const BEGIN = '\u001B[?2026h';
const END = '\u001B[?2026l';

const NO_FOOTER: Footer = { rows: [], row: 0, column: 0 };

export class Screen {
  /** Text that is written here stays above the region. */
  readonly output: Output;
  readonly #terminal: Output;
  #open = ''; // a line that stays and has not ended
  #live: () => readonly string[] = () => [];
  #footer: () => Footer = () => NO_FOOTER;
  /** The painted rows down to the cursor, and the cursor's column in the last one. */
  #painted: { readonly rows: readonly string[]; readonly column: number } | undefined;
  #frame: NodeJS.Timeout | undefined;
  #isLent = false;
  #isClosed = false;

  constructor(terminal: Output) {
    this.#terminal = terminal;
    const output = new Writable({
      decodeStrings: false,
      highWaterMark: 1,
      write: (text: string, _encoding, done) => this.#append(String(text), done),
    });
    this.output = Object.defineProperties(output, {
      isTTY: { value: true },
      columns: { get: () => terminal.columns },
      rows: { get: () => terminal.rows },
    });
  }

  get columns(): number {
    return terminalColumns(this.#terminal);
  }

  get rows(): number {
    return this.#terminal.rows ?? ROWS_DEFAULT;
  }

  /** Writes text that stays. */
  print(text: string): void {
    this.output.write(text);
  }

  /** Sets the rows above the footer, asked for with each paint. */
  showLive(rows: () => readonly string[]): void {
    this.#live = rows;
    this.refresh();
  }

  showFooter(footer: () => Footer): void {
    this.#footer = footer;
    this.refresh();
  }

  /** Paints the region soon: changes that come together are painted once. */
  refresh(): void {
    if (!this.#isClosed && !this.#isLent) this.#frame ??= setTimeout(() => this.paint(), FRAME_MS);
  }

  /** Paints the region now. */
  paint(): void {
    if (!this.#isLent) this.#write('', () => undefined);
  }

  /** Takes the region off the screen, until the next paint. */
  erase(): void {
    if (isOutputGone(this.#terminal)) return;
    this.#terminal.write(this.#home());
    this.#painted = undefined;
  }

  /** Leaves the terminal to others, who end with a whole line. */
  lend(): void {
    this.erase();
    this.#isLent = true;
  }

  comeBack(): void {
    this.#isLent = false;
    this.paint();
  }

  clear(): void {
    this.#painted = undefined;
    this.#terminal.write('\u001B[2J\u001B[H');
    this.paint();
  }

  /** Erases the region for good. Text that is written later stays as it is. */
  close(): void {
    if (this.#isClosed) return;
    this.erase();
    this.#isClosed = true;
    clearTimeout(this.#frame);
    if (this.#open !== '' && !isOutputGone(this.#terminal)) this.#terminal.write(`${this.#open}\n`);
  }

  #append(text: string, done: () => void): void {
    const all = this.#open + text;
    const end = all.lastIndexOf('\n') + 1;
    this.#open = all.slice(end);
    this.#write(all.slice(0, end), done);
  }

  #write(text: string, done: () => void): void {
    clearTimeout(this.#frame);
    this.#frame = undefined;
    if (isOutputGone(this.#terminal)) return done();
    if (this.#isClosed || this.#isLent) return void this.#terminal.write(text, () => done());
    const home = this.#home();
    const region = this.#region();
    this.#terminal.write(`${BEGIN}${home}${text}${region}${END}`, () => done());
  }

  /** Lays out the region, and notes where the cursor is left. */
  #region(): string {
    const { rows: below, row, column } = this.#footer();
    const room = Math.max(this.rows - 1 - below.length, 0);
    const live = [...(this.#open === '' ? [] : [this.#open]), ...this.#live()];
    const above = room === 0 ? [] : live.slice(-room);
    const rows = [...above, ...below];
    if (rows.length === 0) {
      this.#painted = undefined;
      return '';
    }
    const at = below.length === 0 ? rows.length - 1 : above.length + row;
    const down = rows.length - 1 - at;
    this.#painted = { rows: rows.slice(0, at + 1), column };
    return `${rows.join('\n')}${down > 0 ? `\u001B[${down}A` : ''}\r${column > 0 ? `\u001B[${column}C` : ''}`;
  }

  /** Moves to the start of the region and clears everything after it. */
  #home(): string {
    if (this.#painted === undefined) return '';
    const { rows, column } = this.#painted;
    // A terminal that became narrower has wrapped the rows again.
    const above = rows.slice(0, -1).map((row) => Math.max(Math.ceil(widthOfText(row) / this.columns), 1));
    const up = above.reduce((sum, each) => sum + each, Math.floor(column / this.columns));
    return `${up > 0 ? `\u001B[${up}A` : ''}\r\u001B[J`;
  }
}
