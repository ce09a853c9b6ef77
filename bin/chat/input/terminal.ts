// The terminal of a chat: reads messages and answers to questions, and interrupts while the agent works.
//
// Keys
//   Enter sends. Alt-Enter, Ctrl-J and a \ at the end of a line begin a new line; pasted line breaks stay line breaks.
//   While the agent works, Esc and Ctrl-C interrupt it, and a second Ctrl-C leaves at once.
//   At the prompt, Ctrl-C discards the draft; with an empty draft it says how to leave.
//   Text typed while the agent works never answers a question. Enter queues it as a message (typed-ahead.ts).

import { type Io, isGone } from '../../io.ts';
import { isAscii, type Style, styleFor } from '../../views/text/style.ts';
import { clean, columnsOf, cut } from '../../views/text/terminal-text.ts';
import { DraftBox, type Looks } from './draft-box.ts';
import { continued, type Draft, draftOf, edited, EMPTY, inserted, lineAway } from './draft.ts';
import { isNewline, type Key, Keyboard } from './keyboard.ts';
import { TypedAhead } from './typed-ahead.ts';

const LEAVE_NOTE = 'Ctrl-C once more leaves';

export type Message = { readonly text: string } | { readonly leave: 'end' | 'interrupt' };

export type Wishes = {
  readonly interrupt: () => void;
  /** Called on the second Ctrl-C: the user wants to leave at once. */
  readonly leave: () => void;
};

export type MessageWish = {
  /** Earlier messages of the user, newest last. */
  readonly history: readonly string[];
  /** Names of slash commands, for completion. */
  readonly slashes: readonly string[];
  readonly note: string;
};

export class Terminal {
  readonly #io: Pick<Io, 'stdin' | 'stdout' | 'env' | 'job'>;
  readonly #style: Style;
  readonly #keyboard: Keyboard;
  readonly #box: DraftBox;
  #hear: (key: Key) => void = () => undefined;
  #gone: () => void = () => undefined;
  #isGone = false;
  #repaint: () => void = () => undefined;
  readonly #ahead = new TypedAhead();
  #wishes: Wishes | undefined;
  #isInterrupted = false;
  #status = '';

  constructor(io: Pick<Io, 'stdin' | 'stdout' | 'env' | 'job'>) {
    this.#io = io;
    this.#style = styleFor(io.stdout, io.env);
    this.#box = new DraftBox(io.stdout);
    this.#hear = this.#hearAtWork;
    this.#keyboard = new Keyboard(
      io,
      (key) => this.#hear(key),
      () => {
        this.#isGone = true;
        this.#gone();
      },
    );
    io.stdout.on('resize', this.#resized);
  }

  close(): void {
    this.#io.stdout.off('resize', this.#resized);
    this.status('');
    this.#keyboard.close();
  }

  /** Lets keys interrupt the agent, until the caller calls the returned function. */
  atWork(wishes: Wishes): () => void {
    this.#wishes = wishes;
    this.#isInterrupted = false;
    this.#gone = wishes.leave;
    return () => {
      this.#wishes = undefined;
      this.#gone = () => undefined;
    };
  }

  /** Shows a line until the next output; an empty text hides it. */
  status(text: string): void {
    if (text === this.#status) return;
    this.#status = text;
    this.#paintStatus();
  }

  #paintStatus(): void {
    if (isGone(this.#io.stdout)) return;
    const text = this.#status === '' ? '' : `${this.#status}${this.#ahead.note}`;
    const line = text === '' ? '' : this.#style('dim', cut(clean(text), columnsOf(this.#io.stdout) - 1));
    this.#io.stdout.write(`\r\u001B[K${line}`);
  }

  message({ history, slashes, note }: MessageWish, signal: AbortSignal): Promise<Message> {
    const lines = [...history, ''];
    let shown = lines.length - 1;
    let isWarned = false;
    const looks = this.#looks(isAscii(this.#io.env) ? '> ' : '❯ ', note);
    const sent = signal.aborted || this.#isGone ? undefined : this.#ahead.takeMessage();
    if (sent !== undefined) {
      this.status('');
      this.#box.leave(draftOf(sent), looks);
      return Promise.resolve({ text: sent });
    }
    return this.#typing<Message>(
      this.#ahead.takeDraft(),
      signal,
      { leave: 'end' },
      (key, draft) => {
        const wasWarned = isWarned;
        isWarned = false;
        if (isCtrl(key, 'c')) {
          if (draft.text !== '') return { draft: this.#ahead.takeDraft(), note };
          if (wasWarned) return { result: { leave: 'interrupt' } };
          isWarned = true;
          return { draft, note: LEAVE_NOTE };
        }
        if (isCtrl(key, 'd') && draft.text === '') return { result: { leave: 'end' } };
        if (isCtrl(key, 'l')) this.#clearScreen();
        if (isCtrl(key, 'z')) this.#sleep();
        if (isNewline(key)) return { draft: inserted(draft, '\n'), note };
        if (key.name === 'return') {
          const longer = continued(draft);
          if (longer !== undefined) return { draft: longer, note };
          return draft.text.trim() === '' ? { draft, note } : { result: { text: draft.text } };
        }
        if (key.name === 'tab') return { draft: completed(draft, slashes), note };
        if (key.name === 'up' || key.name === 'down') {
          const moved = lineAway(draft, key.name);
          if (moved !== undefined) return { draft: moved, note };
          const next = shown + (key.name === 'up' ? -1 : 1);
          if (lines[next] === undefined) return { draft, note };
          // Keep the edited draft, so the user finds it when moving back.
          lines[shown] = draft.text;
          shown = next;
          return { draft: draftOf(lines[next]), note };
        }
        return { draft: edited(draft, key) ?? draft, note };
      },
      looks,
    );
  }

  /** Asks for one line; undefined if the question was withdrawn or the input has ended. */
  async line(words: string, signal: AbortSignal): Promise<string | undefined> {
    const last = words.lastIndexOf('\n') + 1;
    this.#ahead.hold();
    this.status('');
    this.#io.stdout.write(words.slice(0, last));
    return this.#typing<string | undefined>(
      EMPTY,
      signal,
      undefined,
      (key, draft) => {
        if (key.name === 'escape' || isCtrl(key, 'c')) {
          this.#interrupt(key);
          return { draft, note: '' };
        }
        if (isCtrl(key, 'd') && draft.text === '') return { result: undefined };
        if (key.name === 'return' || key.name === 'enter') return { result: draft.text };
        const text = key.text.replaceAll('\n', ' ');
        return { draft: edited(draft, { ...key, text }) ?? draft, note: '' };
      },
      this.#looks(words.slice(last), ''),
    );
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  #typing<Result>(
    begun: Draft,
    signal: AbortSignal,
    otherwise: Result,
    press: (key: Key, draft: Draft) => { readonly draft: Draft; readonly note: string } | { readonly result: Result },
    looks: Looks,
  ): Promise<Result> {
    let draft = begun;
    let note = looks.note;
    const hadGone = this.#gone;
    const { promise, resolve } = Promise.withResolvers<Result>();
    const settle = (result: Result): void => {
      this.#hear = this.#hearAtWork;
      this.#repaint = () => undefined;
      this.#gone = hadGone;
      signal.removeEventListener('abort', withdrawn);
      this.#box.leave(draft, looks);
      resolve(result);
    };
    const withdrawn = (): void => settle(otherwise);
    this.status('');
    if (signal.aborted || this.#isGone) return Promise.resolve(otherwise);
    signal.addEventListener('abort', withdrawn);
    this.#gone = withdrawn;
    this.#repaint = () => this.#box.paint(draft, { ...looks, note });
    this.#hear = (key) => {
      const next = press(key, draft);
      if ('result' in next) return settle(next.result);
      ({ draft, note } = next);
      this.#repaint();
    };
    this.#repaint();
    return promise;
  }

  readonly #hearAtWork = (key: Key): void => {
    if (key.name === 'escape' || isCtrl(key, 'c')) return this.#interrupt(key);
    this.#ahead.press(key);
    if (this.#status !== '') this.#paintStatus();
  };

  #interrupt(key: Key): void {
    if (isCtrl(key, 'c') && this.#isInterrupted) this.#wishes?.leave();
    else this.#wishes?.interrupt();
    this.#ahead.hold();
    this.#isInterrupted = true;
  }

  #looks(prompt: string, note: string): Looks {
    const dim = (text: string): string => this.#style('dim', text);
    return { prompt, note, dim, paint: (text) => this.#style(['bold', 'cyan'], text) };
  }

  #sleep(): void {
    this.#box.erase();
    this.#keyboard.aside(() => this.#io.job?.signal('SIGTSTP'));
  }

  #clearScreen(): void {
    this.#box.erase();
    this.#io.stdout.write('\u001B[2J\u001B[H');
  }

  readonly #resized = (): void => this.#repaint();
}

function isCtrl(key: Key, name: string): boolean {
  return key.ctrl && key.name === name;
}

function completed(draft: Draft, slashes: readonly string[]): Draft {
  if (!/^\/\w*$/.test(draft.text)) return draft;
  const [only, another] = slashes.filter((name) => name.startsWith(draft.text));
  return only === undefined || another !== undefined ? draft : draftOf(`${only} `);
}
