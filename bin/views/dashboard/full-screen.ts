// The whole terminal while the dashboard is shown: its second screen, which has no scrollback.
//
// Guarantees
//   1. A resize leaves no old picture behind, and the first screen stays as it was.
//   2. Lines that did not change are not written again.
//   3. Text that stays is written to the first screen, at the latest when the dashboard is closed.
//   4. Nothing is written to an output that is gone.
//
// A process that exits gives the first screen and the cursor back.

import { type Io, isOutputGone, type Output } from '../../io.ts';

const ENTER = '\u001B[?1049h\u001B[2J';
const LEAVE = '\u001B[?1049l';
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
const BELL = '\u0007';
const KEPT_CHARS_MAX = 200_000;

/** `cursor`: where the user types, from 0; undefined while nothing is typed. */
export type Picture = {
  readonly lines: readonly string[];
  readonly cursor?: { readonly row: number; readonly column: number } | undefined;
};

export class FullScreen {
  readonly #output: Output;
  readonly #forgetExit: () => void;
  #lines: readonly string[] = [];
  #use: 'picture' | 'others' | 'closed' = 'picture';
  #isEntered = false;
  #kept = ''; // text for the first screen

  constructor({ stdout, job }: Pick<Io, 'stdout' | 'job'>) {
    this.#output = stdout;
    this.#forgetExit = job?.onExit(() => this.#exit()) ?? (() => undefined);
  }

  /** Whether a picture may be drawn now. A terminal that is slow to read gets no more. */
  get isFree(): boolean {
    return this.#use === 'picture' && !this.#output.writableNeedDrain;
  }

  /** Whether no picture is on it. */
  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  draw({ lines, cursor }: Picture): void {
    if (this.#use !== 'picture') return;
    const enter = this.#isEntered ? '' : ENTER;
    this.#isEntered = true;
    const at = cursor === undefined ? '' : `${moveCursorTo(cursor.row, cursor.column)}${SHOW_CURSOR}`;
    this.#write(`${BEGIN}${enter}${HIDE_CURSOR}${NO_WRAP}${this.#changes(lines)}${WRAP}${at}${END}`);
    this.#lines = lines;
  }

  /** Keeps whole lines for the first screen, where they stay. */
  print(text: string): void {
    if (this.#use !== 'picture') return this.#write(text);
    this.#kept = (this.#kept + text).slice(-KEPT_CHARS_MAX);
  }

  bell(): void {
    this.#write(BELL);
  }

  /** Gives the first screen to others, who write whole lines at the cursor. */
  leave(): void {
    if (this.#use !== 'picture') return;
    this.#exit();
    this.#use = 'others';
  }

  /** Pictures are drawn again. */
  comeBack(): void {
    if (this.#use === 'others') this.#use = 'picture';
  }

  /** The next picture is drawn as a whole: the terminal was resized, or others have written to it. */
  erase(): void {
    if (this.#isEntered && this.#use === 'picture') this.#write(`${moveCursorTo(0, 0)}${ERASE_BELOW}`);
    this.#lines = [];
  }

  /** Shows the first screen until the next picture: the shell has the terminal. */
  suspend(): void {
    this.#exit();
  }

  /** Writes the last picture to the first screen, where it stays. */
  close(last: readonly string[]): void {
    if (this.#use === 'closed') return;
    this.#exit();
    this.#use = 'closed';
    this.#forgetExit();
    if (last.length > 0) this.#write(`${NO_WRAP}${last.map((line) => `${line}\n`).join('')}${WRAP}`);
  }

  #changes(lines: readonly string[]): string {
    const changed = lines.map((line, row) =>
      line === this.#lines[row] ? '' : `${moveCursorTo(row, 0)}${line}${ERASE_LINE_END}`,
    );
    const isShorter = lines.length < this.#lines.length;
    return `${changed.join('')}${isShorter ? `${moveCursorTo(lines.length, 0)}${ERASE_BELOW}` : ''}`;
  }

  #exit(): void {
    if (this.#isEntered) this.#write(`${LEAVE}${SHOW_CURSOR}`);
    this.#isEntered = false;
    this.#lines = [];
    if (this.#kept !== '') this.#write(this.#kept);
    this.#kept = '';
  }

  #write(text: string): void {
    if (!isOutputGone(this.#output)) this.#output.write(text);
  }
}

function moveCursorTo(row: number, column: number): string {
  return `\u001B[${row + 1};${column + 1}H`;
}
