// The terminal of a chat: reads messages at all times, answers to questions, and interrupts while the agent works.
//
// Keys
//   Enter sends. Alt-Enter, Ctrl-J and a \ at the end of a line begin a new line; pasted line breaks stay line breaks.
//   While the agent works, Enter queues (queue.ts): Tab chooses between the next step and the end of the turn, and Up
//   takes the newest message back. Esc and Ctrl-C interrupt, and a second Ctrl-C leaves at once.
//   At the prompt, Ctrl-C discards the draft; with an empty draft it says how to leave.
//   Shift-Tab changes the mode, Ctrl-O shows more of a call's output, Ctrl-R searches the history.
//   Text typed before a question never answers it.

import { type Io, isOutputGone } from '../../io.ts';
import { isAsciiTerminal, type Style, textStyle } from '../../views/text/style.ts';
import { type Choice, Chooser } from '../screen/chooser.ts';
import { type FooterParts, chatFooter, chatPromptRows } from '../screen/footer.ts';
import type { Screen } from '../screen/screen.ts';
import { type Draft, newDraft, editDraft, EMPTY } from '../../terminal/draft.ts';
import { Editor, type EditorOptions } from './editor.ts';
import { isCtrlKey, type Key, Keyboard } from '../../terminal/keyboard.ts';
import { Queue, type When } from './queue.ts';

const LEAVE_NOTE = 'Ctrl-C once more leaves';

export type Message = { readonly text: string } | { readonly leave: 'end' | 'interrupt' };

export type Wishes = {
  readonly interrupt: () => void;
  /** Called on the second Ctrl-C: the user wants to leave at once. */
  readonly leave: () => void;
};

export type TerminalOptions = EditorOptions & {
  readonly screen: Screen;
  readonly mode: () => string;
  readonly changeMode: () => void;
  readonly expand: () => void;
};

type Question = { readonly prompt: string; draft: Draft; readonly settle: (answer: string | undefined) => void };

export class Terminal {
  readonly queue = new Queue();
  readonly #io: Pick<Io, 'stdin' | 'stdout' | 'env' | 'job'>;
  readonly #options: TerminalOptions;
  readonly #style: Style;
  #keyboard: Keyboard;
  readonly #editor: Editor;
  #aside: Draft | undefined; // a draft that waits while held messages are looked at
  #settle: ((message: Message) => void) | undefined; // at rest: takes the next message
  #question: Question | undefined;
  #chooser: Chooser | undefined;
  #wishes: Wishes | undefined;
  #when: When = 'step';
  #isInterrupted = false;
  #isWarned = false;
  #isGone = false;
  #status = '';
  #note = '';

  constructor(io: Pick<Io, 'stdin' | 'stdout' | 'env' | 'job'>, options: TerminalOptions) {
    this.#io = io;
    this.#options = options;
    this.#style = textStyle(io.stdout, io.env);
    this.#editor = new Editor(options);
    this.#keyboard = this.#openKeyboard();
    options.screen.showFooter(() => chatFooter(this.#parts(), options.screen));
    io.stdout.on('resize', this.#repaint);
  }

  close(): void {
    this.#io.stdout.off('resize', this.#repaint);
    this.#options.screen.close();
    this.#keyboard.close();
  }

  /** Leaves keys and screen to others until `work` has ended. */
  async lend<Result>(work: () => Promise<Result>): Promise<Result> {
    const { screen } = this.#options;
    screen.lend();
    this.#keyboard.close();
    try {
      return await work();
    } finally {
      this.#keyboard = this.#openKeyboard();
      screen.comeBack();
    }
  }

  #openKeyboard(): Keyboard {
    return new Keyboard(this.#io, (key) => this.#hear(key), this.#gone);
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Lets keys interrupt the agent, until the caller calls the returned function. */
  atWork(wishes: Wishes): () => void {
    this.#wishes = wishes;
    this.#isInterrupted = false;
    return () => {
      this.#wishes = undefined;
      this.queue.steer = () => undefined;
      this.status('');
    };
  }

  /** Shows a line above the draft; an empty text hides it. */
  status(text: string): void {
    if (text === this.#status) return;
    this.#status = text;
    this.#options.screen.refresh();
  }

  /** The next message: one that was queued, or one that the user sends now. */
  async message(note: string, signal: AbortSignal): Promise<Message> {
    if (signal.aborted || this.#isGone) return { leave: 'end' };
    const queued = this.queue.takeNext();
    if (queued !== undefined) return this.#sent(queued);
    this.#takeHeld();
    this.#note = note;
    const { promise, resolve } = Promise.withResolvers<Message>();
    const withdrawn = (): void => resolve({ leave: 'end' });
    signal.addEventListener('abort', withdrawn, { once: true });
    this.#settle = resolve;
    this.#repaint();
    const message = await promise;
    signal.removeEventListener('abort', withdrawn);
    this.#settle = undefined;
    this.#note = '';
    return message;
  }

  /** Asks for one line; undefined if the question was withdrawn or the input has ended. */
  async line(words: string, signal: AbortSignal): Promise<string | undefined> {
    if (signal.aborted || this.#isGone) return undefined;
    const last = words.lastIndexOf('\n') + 1;
    const prompt = words.slice(last);
    this.queue.hold();
    this.#options.screen.print(words.slice(0, last));
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const withdrawn = (): void => resolve(undefined);
    signal.addEventListener('abort', withdrawn, { once: true });
    const question = { prompt, draft: EMPTY, settle: resolve };
    this.#question = question;
    this.#repaint();
    const answer = await promise;
    signal.removeEventListener('abort', withdrawn);
    this.#question = undefined;
    this.#print(prompt, answer ?? question.draft.text);
    return answer;
  }

  /** Lets the user choose from a list; undefined if the user chooses nothing. */
  async choose(title: string, choices: readonly Choice[]): Promise<number | undefined> {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    this.#chooser = new Chooser(title, choices, resolve);
    this.#repaint();
    const chosen = this.#isGone ? undefined : await promise;
    this.#chooser = undefined;
    this.#repaint();
    return chosen;
  }

  readonly #gone = (): void => {
    this.#isGone = true;
    this.#chooser?.settle(undefined);
    this.#question?.settle(undefined);
    if (this.#wishes === undefined) this.#settle?.({ leave: 'end' });
    else this.#wishes.leave();
  };

  #parts(): FooterParts {
    const { mode } = this.#options;
    const isAtWork = this.#settle === undefined;
    const { menu, searchNote, found, draft } = this.#editor;
    const hint = isAtWork && this.#question === undefined ? `Enter ${WHEN[this.#when]} · Tab changes that` : this.#note;
    return {
      status: this.#status,
      queued: this.queue.waiting,
      ...(this.#chooser !== undefined && { chooser: this.#chooser }),
      draft: this.#question?.draft ?? found ?? draft,
      prompt: this.#question?.prompt ?? this.#prompt,
      isQuestion: this.#question !== undefined,
      menu: this.#question === undefined ? menu : undefined,
      note: searchNote ?? (this.#isWarned ? LEAVE_NOTE : [mode(), hint].filter((each) => each !== '').join(' · ')),
      style: this.#style,
      isAscii: isAsciiTerminal(this.#io.env),
    };
  }

  get #prompt(): string {
    return isAsciiTerminal(this.#io.env) ? '> ' : '❯ ';
  }

  #hear(key: Key): void {
    if (this.#chooser !== undefined) this.#chooser.press(key);
    else if (this.#question !== undefined) this.#answer(key, this.#question);
    else this.#press(key);
    this.#repaint();
  }

  #answer(key: Key, question: Question): void {
    if (key.name === 'escape' || isCtrlKey(key, 'c')) return this.#interrupt(key);
    if (isCtrlKey(key, 'd') && question.draft.text === '') return question.settle(undefined);
    if (key.name === 'return' || key.name === 'enter') return question.settle(question.draft.text);
    question.draft = editDraft(question.draft, { ...key, text: key.text.replaceAll('\n', ' ') }) ?? question.draft;
  }

  #press(key: Key): void {
    const wasWarned = this.#isWarned;
    this.#isWarned = false;
    if (key.name === 'shift-tab') return this.#options.changeMode();
    if (isCtrlKey(key, 'o')) return this.#options.expand();
    if (isCtrlKey(key, 'l')) return this.#options.screen.clear();
    if (isCtrlKey(key, 'z')) return this.#sleep();
    if (this.#settle === undefined ? this.#pressAtWork(key) : this.#pressAtRest(key, wasWarned)) return;
    const pressed = this.#editor.press(key);
    if (typeof pressed === 'object') this.#send(pressed.send);
  }

  /** Returns true if the key is not a key for the editor. */
  #pressAtRest(key: Key, wasWarned: boolean): boolean {
    if (this.#editor.searchNote !== undefined) return false;
    if (isCtrlKey(key, 'd') && this.#editor.isEmpty) {
      this.#print(this.#prompt, '');
      this.#settle?.({ leave: 'end' });
      return true;
    }
    if (!isCtrlKey(key, 'c')) return false;
    if (!this.#editor.isEmpty) this.#takeHeld(EMPTY);
    else if (wasWarned) this.#settle?.({ leave: 'interrupt' });
    else this.#isWarned = true;
    return true;
  }

  #pressAtWork(key: Key): boolean {
    const { menu, searchNote, isEmpty } = this.#editor;
    const isBusy = menu !== undefined || searchNote !== undefined;
    if (isCtrlKey(key, 'c') || (key.name === 'escape' && !isBusy)) this.#interrupt(key);
    else if (key.name === 'tab' && !isBusy) {
      this.#when = this.#when === 'step' ? 'turn' : 'step';
      if (isEmpty) this.queue.toggleLast();
    } else if (key.name === 'up' && isEmpty) {
      const taken = this.queue.takeBack();
      if (taken === undefined) return false;
      this.#editor.set(newDraft(taken));
    } else return false;
    return true;
  }

  #send(text: string): void {
    const rest = this.#settle;
    this.#editor.set(EMPTY);
    // From here on keys are for the next message, although the caller does not know of this one yet.
    this.#settle = undefined;
    if (rest !== undefined) return rest(this.#sent(text));
    this.queue.add(text, this.#when);
  }

  #sent(text: string): Message {
    this.#print(this.#prompt, text);
    return { text: this.#options.pastes.unfold(text) };
  }

  /** Puts the next held message into the draft, or the draft that waited for them. */
  #takeHeld(otherwise?: Draft): void {
    const held = this.queue.takeHeld();
    if (held !== undefined) {
      if (otherwise === undefined && !this.#editor.isEmpty) this.#aside ??= this.#editor.draft;
      return this.#editor.set(newDraft(held));
    }
    const draft = this.#aside ?? otherwise ?? this.#editor.draft;
    this.#aside = undefined;
    this.#editor.set(draft);
  }

  #interrupt(key: Key): void {
    if (isCtrlKey(key, 'c') && this.#isInterrupted) this.#wishes?.leave();
    else this.#wishes?.interrupt();
    this.queue.hold();
    this.#isInterrupted = true;
  }

  /** Prints a prompt and what was typed behind it, as text that stays. */
  #print(prompt: string, text: string): void {
    const { screen } = this.#options;
    screen.print(
      `${chatPromptRows(newDraft(text), { prompt, style: this.#style, columns: screen.columns }).join('\n')}\n`,
    );
  }

  #sleep(): void {
    this.#options.screen.erase();
    this.#keyboard.aside(() => this.#io.job?.signal('SIGTSTP'));
  }

  readonly #repaint = (): void => {
    if (!isOutputGone(this.#io.stdout)) this.#options.screen.paint();
  };
}

const WHEN: Readonly<Record<When, string>> = { step: 'sends at the next step', turn: 'sends after the turn' };
