// Output of calls while they run: the last lines of each, or as many as the screen holds once the user asks for more.

import { cleanText, Cleaner, cutText } from '../../views/text/terminal-text.ts';

const LINES_SHOWN = 5;
const LINES_KEPT = 500;
const LINE_CHARS_MAX = 2_000;

export class CallOutput {
  readonly #running = new Map<string, { readonly cleaner: Cleaner; lines: string[] }>(); // by call
  #last: readonly string[] = [];
  isExpanded = false;

  begin(callId: string): void {
    this.#running.set(callId, { cleaner: new Cleaner(), lines: [''] });
  }

  add(callId: string, delta: string): void {
    const call = this.#running.get(callId);
    if (call === undefined) return;
    const [first = '', ...rest] = call.cleaner.push(delta).replaceAll('\t', '  ').split('\n');
    const open = `${call.lines.pop() ?? ''}${first}`.slice(0, LINE_CHARS_MAX);
    call.lines = [...call.lines, open, ...rest].slice(-LINES_KEPT);
  }

  /** `output`: the whole output of the call, for `last`. */
  end(callId: string, output: string): void {
    this.#running.delete(callId);
    this.#last = cleanText(output).split('\n').slice(-LINES_KEPT);
  }

  /** The output of the call that ended last. */
  get last(): readonly string[] {
    return this.#last;
  }

  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  rows(columns: number): readonly string[] {
    return [...this.#running.values()].flatMap(({ lines }) => {
      const told = lines.at(-1) === '' ? lines.slice(0, -1) : lines;
      return told.slice(this.isExpanded ? 0 : -LINES_SHOWN).map((line) => `      ${cutText(line, columns - 7)}`);
    });
  }
}
