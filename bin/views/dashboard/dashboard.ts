// dashboard: a run on a terminal, drawn again and again in the same place.
//
// Events become RunState (coordinator) and a listr2 list (run-list.ts). The list's renderer (renderer.ts) draws
// the state on a screen (screen.ts) while keys are kept away from it (keys.ts). Questions and warnings are
// written above the picture, where they stay and scroll. The report follows the last picture.

import { RunState } from '@drover/coordinator/view/state';
import type { Shown } from '@drover/core/bus';
import { type Io, print } from '../../io.ts';
import { reportOf } from '../report.ts';
import { inAscii, isAscii, looksOf, type Style, styleFor } from '../text/style.ts';
import { clean, columnsOf } from '../text/terminal-text.ts';
import type { RunView } from '../view.ts';
import { wrapped } from '../text/word-wrap.ts';
import { Keys } from './keys.ts';
import { RunList } from './run-list.ts';
import { Screen } from './screen.ts';

export type DashboardIo = Pick<Io, 'stdin' | 'stdout' | 'env' | 'job'>;

/** `now` is the clock of the elapsed time. */
export function dashboardView(io: DashboardIo, now: () => number): RunView {
  return new Dashboard(io, now);
}

class Dashboard implements RunView {
  readonly #io: DashboardIo;
  readonly #style: Style;
  readonly #isAscii: boolean;
  readonly #state = new RunState();
  readonly #screen: Screen;
  readonly #keys: Keys;
  readonly #list: RunList;
  readonly #drawn: Promise<void>;
  #isClosed = false;
  #askings = 0;

  constructor(io: DashboardIo, now: () => number) {
    this.#io = io;
    this.#style = styleFor(io.stdout, io.env);
    this.#isAscii = isAscii(io.env);
    this.#screen = new Screen(io);
    this.#keys = new Keys(io, {
      released: () => this.#screen.moveOn(),
      resumed: () => this.#list.refresh(),
    });
    this.#list = new RunList({
      state: this.#state,
      screen: this.#screen,
      keys: this.#keys,
      output: io.stdout,
      style: this.#style,
      ascii: this.#isAscii,
      now,
    });
    this.#drawn = this.#list.run();
  }

  show(event: Shown): Promise<void> | undefined {
    this.#state.take(event);
    this.#list.take(event);
    if (event.type === 'run_end') return this.#finish();
    const words = this.#wordsOn(event);
    if (words !== undefined) this.#screen.print(words);
    return undefined;
  }

  recall(event: Shown): void {
    this.#state.take(event);
  }

  async say(text: string): Promise<void> {
    if (this.#isClosed) return print(this.#io.stdout, this.#wrapped(text, ''));
    this.#screen.print(this.#wrapped(text, ''));
  }

  async whileAsking<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    this.#askings += 1;
    this.#screen.leave();
    this.#keys.giveBack();
    try {
      return await ask();
    } finally {
      this.#askings -= 1;
      if (this.#askings === 0) this.#screen.comeBack();
      this.#list.refresh();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#list.end();
    await this.#drawn;
  }

  async #finish(): Promise<void> {
    await this.close();
    const report = reportOf(this.#state, { columns: columnsOf(this.#io.stdout), style: this.#style });
    await print(this.#io.stdout, this.#marked(`\n${report}`));
  }

  /** The lines that stay, for events that need some. */
  #wordsOn(event: Shown): string | undefined {
    if (event.type === 'warning') return this.#note('yellow', '!', this.#of(event, event.message));
    if (event.type === 'permission_request') {
      const { format, sign } = looksOf.asking;
      return this.#note(format, sign, this.#of(event, `${event.summary} — ${event.why}`));
    }
    // The user's own answer is on the screen already.
    if (event.type === 'permission_decision' && !event.allowed && event.by !== 'user')
      return this.#note('red', '✗', this.#of(event, `not allowed: ${event.reason ?? event.summary}`));
    return undefined;
  }

  #of({ task }: Shown, text: string): string {
    return task === undefined ? text : `${task}: ${text}`;
  }

  #note(format: Parameters<Style>[0], sign: string, text: string): string {
    return this.#marked(`${this.#style(format, sign)} ${this.#wrapped(text, '  ')}`);
  }

  #marked(text: string): string {
    return this.#isAscii ? inAscii(text) : text;
  }

  #wrapped(text: string, indent: string): string {
    const lines = wrapped(clean(text).replaceAll('\t', '  '), columnsOf(this.#io.stdout) - indent.length).trimEnd();
    return `${lines.replaceAll('\n', `\n${indent}`)}\n`;
  }
}
