// dashboard: a run on a terminal, which the user operates with keys.
//
// Events become RunState (coordinator), conversations (panels/) and a listr2 list (run-list.ts). The list's renderer
// (renderer.ts) draws them on the whole screen (full-screen.ts). Keys (keys.ts) go to the operator (operator.ts), which
// asks the run for what they mean: calls go down through RunDesk, events come up. Questions of workers are put in a
// panel. Warnings stay on the first screen, with the last picture and the report.

import { RunState } from '@drover/coordinator/view/state';
import type { Shown } from '@drover/core/bus';
import { Questions } from '@drover/core/permission/questions';
import { type Io, print } from '../../io.ts';
import { type ReportTime, runReport } from '../report.ts';
import { textInAscii, isAsciiTerminal, looksOf, type Style, textStyle } from '../text/style.ts';
import { cleanText, terminalColumns } from '../text/terminal-text.ts';
import type { RunDesk, RunView } from '../view.ts';
import { wrapText } from '../text/word-wrap.ts';
import { FullScreen } from './full-screen.ts';
import { Keys } from './keys.ts';
import { Operator } from './operator.ts';
import { Conversations } from './panels/conversation.ts';
import { Panels } from './panels/panels.ts';
import { RunList } from './run-list.ts';

export type DashboardIo = Pick<Io, 'stdin' | 'stdout' | 'env' | 'job'>;

/** `now` is the clock of the elapsed time. */
export function dashboardView(io: DashboardIo, now: () => number, when?: ReportTime): RunView {
  return new Dashboard(io, now, when);
}

class Dashboard implements RunView {
  /** Absent without a keyboard: then the user is not asked here. */
  readonly asked?: NonNullable<RunView['asked']>;
  readonly #questions: Questions | undefined;
  readonly #io: DashboardIo;
  readonly #style: Style;
  readonly #isAscii: boolean;
  readonly #state = new RunState();
  readonly #when: ReportTime | undefined;
  readonly #screen: FullScreen;
  readonly #keys: Keys;
  readonly #conversations = new Conversations();
  readonly #operator: Operator;
  readonly #list: RunList;
  readonly #drawn: Promise<void>;
  #desk: RunDesk | undefined;
  #isClosed = false;
  #askings = 0;

  constructor(io: DashboardIo, now: () => number, when: ReportTime | undefined) {
    this.#io = io;
    this.#when = when;
    this.#style = textStyle(io.stdout, io.env);
    this.#isAscii = isAsciiTerminal(io.env);
    this.#screen = new FullScreen(io);
    const refresh = () => this.#list.refresh();
    this.#questions = io.stdin.isTTY === true ? new Questions(refresh) : undefined;
    if (this.#questions !== undefined) this.asked = this.#ringing(this.#questions);
    this.#operator = this.#openOperator(refresh);
    this.#keys = new Keys(io, {
      pressed: (key) => this.#operator.press(key),
      released: () => this.#screen.suspend(),
      resumed: refresh,
    });
    this.#list = new RunList({
      state: this.#state,
      screen: this.#screen,
      keys: this.#keys,
      operator: this.#operator,
      output: io.stdout,
      style: this.#style,
      ascii: this.#isAscii,
      now,
    });
    this.#drawn = this.#list.run();
  }

  operate(desk: RunDesk): void {
    this.#desk = desk;
    this.#operator.operate(desk);
  }

  show(event: Shown): Promise<void> | undefined {
    this.recall(event);
    this.#list.take(event);
    if (event.type === 'run_end') return this.#finish();
    const words = this.#wordsOn(event);
    if (words !== undefined) this.#note(words);
    return undefined;
  }

  recall(event: Shown): void {
    this.#state.take(event);
    this.#conversations.take(event);
  }

  async say(text: string): Promise<void> {
    if (this.#isClosed) return print(this.#io.stdout, this.#wrapped(text, ''));
    this.#operator.note(text);
    this.#screen.print(this.#wrapped(text, ''));
    this.#list.refresh();
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

  #openOperator(onChange: () => void): Operator {
    const looks = {
      style: this.#style,
      isColoured: this.#style('bold', 'x') !== 'x',
      isAscii: this.#isAscii,
      hasLinks: false,
    };
    const panels = new Panels({ output: this.#io.stdout, looks, conversations: this.#conversations, onChange });
    return new Operator({
      state: this.#state,
      panels,
      questions: this.#questions,
      style: this.#style,
      onChange,
    });
  }

  /** Rings once for all questions that wait together. */
  #ringing(questions: Questions): NonNullable<RunView['asked']> {
    return {
      remembered: questions.remembered,
      ask: (question, signal) => {
        const isFirst = questions.waiting === 0;
        const decision = questions.ask(question, signal);
        if (isFirst && questions.waiting > 0 && this.#desk?.bell !== false) this.#screen.bell();
        this.#list.refresh();
        return decision;
      },
    };
  }

  async #finish(): Promise<void> {
    await this.close();
    const paper = { columns: terminalColumns(this.#io.stdout), style: this.#style };
    const report = runReport(this.#state, paper, this.#when);
    await print(this.#io.stdout, this.#marked(`\n${report}`));
  }

  /** A note that stays, for events that need one. */
  #wordsOn(event: Shown): Note | undefined {
    if (event.type === 'warning') return { format: 'yellow', sign: '!', text: this.#of(event, event.message) };
    if (event.type === 'permission_request' && this.asked === undefined) {
      const { format, sign } = looksOf.asking;
      return { format, sign, text: this.#of(event, `${event.summary} — ${event.why}`) };
    }
    // The user's own answer is known to the user.
    if (event.type === 'permission_decision' && !event.allowed && event.by !== 'user')
      return { format: 'red', sign: '✗', text: this.#of(event, `not allowed: ${event.reason ?? event.summary}`) };
    return undefined;
  }

  #of({ task }: Shown, text: string): string {
    return task === undefined ? text : `${task}: ${text}`;
  }

  #note({ format, sign, text }: Note): void {
    this.#operator.note(`${sign} ${text}`);
    this.#screen.print(this.#marked(`${this.#style(format, sign)} ${this.#wrapped(text, '  ')}`));
  }

  #marked(text: string): string {
    return this.#isAscii ? textInAscii(text) : text;
  }

  #wrapped(text: string, indent: string): string {
    const lines = wrapText(
      cleanText(text).replaceAll('\t', '  '),
      terminalColumns(this.#io.stdout) - indent.length,
    ).trimEnd();
    return `${lines.replaceAll('\n', `\n${indent}`)}\n`;
  }
}

type Note = { readonly format: Parameters<Style>[0]; readonly sign: string; readonly text: string };
