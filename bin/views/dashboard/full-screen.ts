// The whole terminal while the dashboard is shown: its second screen, which has no scrollback.
//
// Guarantees
//   1. A resize leaves no old picture behind, and the first screen stays as it was.
//   2. Lines that did not change are not written again.
//   3. Text that stays is written to the first screen, at the latest when the dashboard is closed.
//
// A process that exits gives the first screen and the cursor back.

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

const ENTER = '\u001B[?1049h\u001B[2J';
const LEAVE = '\u001B[?1049l';
const BELL = '\u0007';
const KEPT_CHARS_MAX = 200_000;

/** `cursor`: where the user types, from 0; undefined while nothing is typed. */
export type Picture = {
  readonly lines: readonly string[];
  readonly cursor?: { readonly row: number; readonly column: number } | undefined;
};

export class FullScreen extends PictureScreen {
  #isEntered = false;
  #kept = ''; // text for the first screen

  draw({ lines, cursor }: Picture): void {
    if (this.use !== 'picture') return;
    const enter = this.#isEntered ? '' : ENTER;
    this.#isEntered = true;
    const at = cursor === undefined ? '' : `${moveCursorTo(cursor.row, cursor.column)}${SHOW_CURSOR}`;
    this.write(`${BEGIN}${enter}${HIDE_CURSOR}${NO_WRAP}${this.#changes(lines)}${WRAP}${at}${END}`);
    this.lines = lines;
  }

  /** Keeps whole lines for the first screen, where they stay. */
  print(text: string): void {
    if (this.use !== 'picture') return this.write(text);
    this.#kept = (this.#kept + text).slice(-KEPT_CHARS_MAX);
  }

  bell(): void {
    this.write(BELL);
  }

  /** Gives the first screen to others, who write whole lines at the cursor. */
  leave(): void {
    if (this.use !== 'picture') return;
    this.giveBack();
    this.use = 'others';
  }

  /** The next picture is drawn as a whole: the terminal was resized, or others have written to it. */
  erase(): void {
    if (this.#isEntered && this.use === 'picture') this.write(`${moveCursorTo(0, 0)}${ERASE_BELOW}`);
    this.lines = [];
  }

  /** Shows the first screen until the next picture: the shell has the terminal. */
  suspend(): void {
    this.giveBack();
  }

  /** Writes the last picture to the first screen, where it stays. */
  close(last: readonly string[]): void {
    if (this.use === 'closed') return;
    this.giveBack();
    this.use = 'closed';
    this.forgetExit();
    if (last.length > 0) this.write(`${NO_WRAP}${last.map((line) => `${line}\n`).join('')}${WRAP}`);
  }

  #changes(lines: readonly string[]): string {
    const changed = lines.map((line, row) =>
      line === this.lines[row] ? '' : `${moveCursorTo(row, 0)}${ERASE_LINE_END}${line}`,
    );
    const isShorter = lines.length < this.lines.length;
    return `${changed.join('')}${isShorter ? `${moveCursorTo(lines.length, 0)}${ERASE_BELOW}` : ''}`;
  }

  protected giveBack(): void {
    if (this.#isEntered) this.write(`${LEAVE}${SHOW_CURSOR}`);
    this.#isEntered = false;
    this.lines = [];
    if (this.#kept !== '') this.write(this.#kept);
    this.#kept = '';
  }
}

function moveCursorTo(row: number, column: number): string {
  return `\u001B[${row + 1};${column + 1}H`;
}
