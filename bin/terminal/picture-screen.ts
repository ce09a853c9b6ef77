// A terminal on which a picture is drawn again and again. Others may have the terminal in between.
//
// Guarantees
//   1. Nothing is written to an output that is gone.
//   2. A process that exits gives the terminal back.

import { type Io, isOutputGone, type Output } from '../io.ts';

export const HIDE_CURSOR = '\u001B[?25l';
export const SHOW_CURSOR = '\u001B[?25h';
// Text between them is shown at once where the terminal can do that.
export const BEGIN = '\u001B[?2026h';
export const END = '\u001B[?2026l';
// A line that the terminal takes for wider than drover does is cut.
export const NO_WRAP = '\u001B[?7l';
export const WRAP = '\u001B[?7h';
// Written before a line, not after it: behind a full line the cursor stays on its last character.
export const ERASE_LINE_END = '\u001B[K';
export const ERASE_BELOW = '\u001B[J';

export abstract class PictureScreen {
  protected readonly output: Output;
  protected lines: readonly string[] = []; // of the last picture
  protected use: 'picture' | 'others' | 'closed' = 'picture';
  protected readonly forgetExit: () => void;

  constructor({ stdout, job }: Pick<Io, 'stdout' | 'job'>) {
    this.output = stdout;
    this.forgetExit = job?.onExit(() => this.giveBack()) ?? (() => undefined);
  }

  /** Makes the terminal what the shell expects. */
  protected abstract giveBack(): void;

  /** Whether a picture may be drawn now. A terminal that is slow to read gets no more. */
  get isFree(): boolean {
    return this.use === 'picture' && !this.output.writableNeedDrain;
  }

  /** Whether no picture is on it. */
  get isEmpty(): boolean {
    return this.lines.length === 0;
  }

  /** Others have left the terminal: pictures are drawn again. */
  comeBack(): void {
    if (this.use === 'others') this.use = 'picture';
  }

  protected write(text: string): void {
    if (!isOutputGone(this.output)) this.output.write(text);
  }
}
