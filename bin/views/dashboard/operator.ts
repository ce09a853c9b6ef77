// The operator: what the user has selected, opened and is typing, and what each key does to the run.
//
// Guarantees
//   1. A question is answered only by a key that was read after the question was drawn. Keys that arrive together
//      with others are not answers.
//   2. Stopping the run and cancelling a task ask first. The bottom line says why the run refuses something.
//   3. The selection stays on its task when the order of the rows changes.

import type { Question } from '@drover/core/agent/calls/calls';
import type { Questions, UserAnswer } from '@drover/core/permission/questions';
import type { RunState } from '@drover/coordinator/view/state';
import { type Draft, editDraft, EMPTY, insertIntoDraft } from '../../terminal/draft.ts';
import type { Key } from '../../terminal/keyboard.ts';
import { cleanText, widthOfText } from '../text/terminal-text.ts';
import type { Style } from '../text/style.ts';
import type { RunDesk } from '../view.ts';
import type { BottomLine, Desk, Frame, Panel } from './frame.ts';
import { dashboardKeyHint } from './panels/key-help.ts';
import type { PanelKind, Panels } from './panels/panels.ts';
import { questionRows, questionTitle } from './panels/question-rows.ts';
import { COORDINATOR, listDashboardTasks } from './rows.ts';

const NOTES_MAX = 20;

/** A line that the user types. */
type Typing = {
  readonly prompt: string;
  readonly send: (text: string) => void;
  /** Sends no words, too. */
  readonly mayBeEmpty: boolean;
  draft: Draft;
};
type Confirming = { readonly words: string; readonly yes: () => void };

export type OperatorOptions = {
  readonly state: RunState;
  readonly panels: Panels;
  readonly questions: Questions | undefined;
  readonly style: Style;
  readonly onChange: () => void;
};

const ANSWERS: Readonly<Record<string, UserAnswer>> = {
  y: { allowed: true, always: false },
  a: { allowed: true, always: true },
  n: { allowed: false, always: false },
};

const SCROLLS: Readonly<Record<string, Parameters<Panels['scroll']>[0]>> = {
  up: 'up',
  k: 'up',
  down: 'down',
  j: 'down',
  pageup: 'pageup',
  pagedown: 'pagedown',
  ' ': 'pagedown',
  g: 'home',
  home: 'home',
  G: 'end',
  end: 'end',
};

const MOVES: Readonly<Record<string, number>> = { up: -1, k: -1, down: 1, j: 1, 'shift-tab': -1, tab: 1 };
const PANELS: Readonly<Record<string, PanelKind>> = { return: 'conversation', d: 'diff', l: 'log', '?': 'keys' };

export class Operator {
  readonly #options: OperatorOptions;
  #desk: RunDesk | undefined;
  #selected: string | undefined;
  #typing: Typing | undefined;
  #confirming: Confirming | undefined;
  #notice: string | undefined;
  readonly #notes: string[] = [];
  #drawnQuestion: string | undefined; // the request that is on the screen
  #isPressed = false;
  #questionTop = 0;
  #questionHeight = 0;

  constructor(options: OperatorOptions) {
    this.#options = options;
  }

  operate(desk: RunDesk): void {
    this.#desk = desk;
  }

  /** Keeps a note on the screen until newer ones replace it. */
  note(text: string): void {
    this.#notes.push(cleanText(text).replaceAll(/\s+/g, ' ').trim());
    this.#notes.splice(0, Math.max(0, this.#notes.length - NOTES_MAX));
  }

  /** Whether a key was pressed since the last picture. */
  get isPressed(): boolean {
    return this.#isPressed;
  }

  /** The user's part of the picture. Without a keyboard nothing is selected. */
  desk(columns: number, isOperable: boolean): Desk {
    const { panels } = this.#options;
    const panel = panels.panel(columns);
    const question = this.#question(columns);
    const bottom = isOperable ? this.#bottom(columns) : undefined;
    return { selected: isOperable ? this.#current() : undefined, panel, question, notes: this.#notes, bottom };
  }

  /** The picture is on the screen. */
  drawn({ heights }: Pick<Frame, 'heights'>): void {
    this.#isPressed = false;
    this.#options.panels.drawn(heights.panel);
    this.#questionHeight = heights.question;
    const asked = this.#options.questions?.current?.requestId;
    if (asked !== this.#drawnQuestion) this.#questionTop = 0;
    if (asked !== this.#drawnQuestion) setImmediate(() => this.#arm(heights.question > 0 ? asked : undefined));
  }

  #arm(requestId: string | undefined): void {
    this.#drawnQuestion = requestId;
  }

  press(key: Key): void {
    this.#isPressed = true;
    this.#press(key);
    this.#options.onChange();
  }

  #press(key: Key): void {
    if (this.#typing !== undefined) return this.#type(this.#typing, key);
    this.#notice = undefined;
    if (this.#confirming !== undefined) return this.#confirm(this.#confirming, key);
    const name = key.text === '' ? key.name : key.text;
    if (key.ctrl || key.meta || this.#answer(name) || this.#scroll(name)) return;
    const kind = PANELS[name];
    const move = MOVES[name];
    if (kind !== undefined) return this.#open(kind);
    if (move !== undefined) return this.#move(move);
    if (name === 'escape') return this.#options.panels.close();
    this.#act(name);
  }

  #act(name: string): void {
    const who = this.#current();
    const desk = this.#desk;
    if (name === 'q')
      return this.#ask('Stop the run? Finished work is kept, and drover resume continues it.', () => desk?.stop());
    if (name === 'p') return this.#say(desk?.control.pause(!this.#options.state.isPaused));
    if (who === undefined || who === COORDINATOR || desk === undefined) return;
    if (name === 's')
      return this.#write(`to ${who}`, (text) =>
        this.#say(desk.control.message(who, text), `sent to ${who}, which reads it at its next step`),
      );
    if (name === 'r') return this.#say(desk.control.retry([who]), `${who} is tried again`);
    if (name === 'x') this.#ask(`Cancel ${who}?`, () => this.#say(desk.control.cancel(who), `${who} is cancelled`));
  }

  // ── questions ───────────────────────────────────────────────────────────────────────────────

  #question(columns: number): Panel | undefined {
    const { questions, style } = this.#options;
    const asked = questions?.current;
    if (questions === undefined || asked === undefined) return undefined;
    const rows = questionRows(asked, { columns, style });
    return { title: questionTitle(asked, questions.waiting), rows, top: this.#questionTop };
  }

  /** Returns whether the key belongs to the question. */
  #answer(name: string): boolean {
    const { questions } = this.#options;
    const asked = questions?.current;
    if (questions === undefined || asked === undefined || asked.requestId !== this.#drawnQuestion) return false;
    const { requestId, field } = asked;
    const answer = field === undefined || name === 'n' ? ANSWERS[name] : undefined;
    if (answer === undefined && name !== 'w') return this.#scrollQuestion(name);
    // The next question is answered by later keys only.
    this.#drawnQuestion = undefined;
    if (answer !== undefined) questions.answer(requestId, answer);
    else this.#answerInWords(asked, questions);
    return true;
  }

  #answerInWords({ requestId, field }: Question, questions: Questions): void {
    const send = (words: string) => {
      if (!questions.answer(requestId, { allowed: field !== undefined, always: false, words }))
        this.#notice = 'the question was withdrawn before you answered it';
    };
    this.#write(field === undefined ? 'no, because' : cleanText(field.name), send, field !== undefined);
  }

  #scrollQuestion(name: string): boolean {
    if (this.#options.panels.opened !== undefined || (name !== 'pagedown' && name !== 'pageup')) return false;
    const by = Math.max(1, this.#questionHeight - 1) * (name === 'pagedown' ? 1 : -1);
    this.#questionTop = Math.max(0, this.#questionTop + by);
    return true;
  }

  // ── selection and panels ────────────────────────────────────────────────────────────────────

  /** The selected row; the first one until the user selects another. */
  #current(): string | undefined {
    const ids = listDashboardTasks(this.#options.state);
    return this.#selected !== undefined && ids.includes(this.#selected) ? this.#selected : ids[0];
  }

  #move(by: number): void {
    const ids = listDashboardTasks(this.#options.state);
    const at = ids.indexOf(this.#current() ?? '') + by;
    this.#selected = ids[Math.max(0, Math.min(at, ids.length - 1))];
    if (this.#selected !== undefined) this.#options.panels.turnTo(this.#selected, this.#desk);
  }

  #open(kind: PanelKind): void {
    const { panels } = this.#options;
    const who = this.#current();
    // The key that opened a panel closes it.
    if (panels.opened === kind && kind !== 'diff') return panels.close();
    // Selected from now on: the rows may move, and the panel stays.
    this.#selected = who;
    if (who !== undefined || kind === 'keys') panels.open(kind, who ?? '', this.#desk);
  }

  #scroll(name: string): boolean {
    const { panels } = this.#options;
    const step = SCROLLS[name];
    if (panels.opened === undefined || step === undefined) return false;
    panels.scroll(step);
    return true;
  }

  // ── the bottom line ─────────────────────────────────────────────────────────────────────────

  #bottom(columns: number): BottomLine {
    if (this.#typing !== undefined) return operatorTypingLine(this.#typing, columns);
    if (this.#confirming !== undefined)
      return { text: `${this.#confirming.words} y yes, any other key no`, format: 'yellow' };
    if (this.#notice !== undefined) return { text: this.#notice, format: 'yellow' };
    const asked = this.#options.questions?.current;
    if (asked !== undefined)
      return { text: dashboardKeyHint(asked.field === undefined ? 'question' : 'field', columns), format: 'yellow' };
    return {
      text: dashboardKeyHint(this.#options.panels.opened === undefined ? 'list' : 'panel', columns),
      format: 'dim',
    };
  }

  #say(refused: string | undefined, done?: string): void {
    this.#notice = refused ?? done;
  }

  #ask(words: string, yes: () => void): void {
    this.#confirming = { words, yes };
  }

  #confirm({ yes }: Confirming, key: Key): void {
    this.#confirming = undefined;
    if (key.text === 'y') yes();
  }

  #write(prompt: string, send: (text: string) => void, mayBeEmpty = false): void {
    this.#typing = { prompt: `${prompt} › `, send, mayBeEmpty, draft: EMPTY };
  }

  #type(typing: Typing, key: Key): void {
    if (key.name === 'escape') this.#typing = undefined;
    else if (key.name === 'return') {
      this.#typing = undefined;
      if (typing.mayBeEmpty || typing.draft.text.trim() !== '') typing.send(typing.draft.text);
    } else if (key.name === 'paste') typing.draft = insertIntoDraft(typing.draft, key.text);
    else typing.draft = editDraft(typing.draft, key) ?? typing.draft;
  }
}

/** The end of the draft that fits, with the cursor. */
function operatorTypingLine({ prompt, draft }: Typing, columns: number): BottomLine {
  const before = cleanText(draft.text.slice(0, draft.at)).replaceAll(/\s/g, ' ');
  const behind = cleanText(draft.text.slice(draft.at)).replaceAll(/\s/g, ' ');
  const room = Math.max(1, columns - widthOfText(prompt) - 1);
  let shown = before;
  while (widthOfText(shown) > room) shown = shown.slice(1);
  const text = prompt + shown;
  return { text: text + behind, format: 'bold', cursor: Math.min(widthOfText(text), columns) };
}
