// The keyboard of a terminal: single keys, and pasted text as one piece.
//
// The terminal is in raw mode while this is open, so Ctrl-C is a key and not a signal. The terminal marks pasted text
// (bracketed paste), so a line break in it sends nothing.

import { emitKeypressEvents, type Interface, type Key as Pressed } from 'node:readline';
import { type Input, isOutputGone, type Output } from '../io.ts';

// Escape sequences arrive in one piece; a pause longer than this means the Esc key alone.
const ESCAPE_MS = 60;
const PASTE_CHARS_MAX = 1_000_000;
const PASTE_ON = '\u001B[?2004h';
const PASTE_OFF = '\u001B[?2004l';
const CTRL_BACKSLASH = '\u001C';

/** `text`: characters that the key types; empty for other keys. */
export type Key = { readonly name: string; readonly ctrl: boolean; readonly meta: boolean; readonly text: string };

export class Keyboard {
  readonly #input: Input;
  readonly #output: Output;
  readonly #hear: (key: Key) => void;
  readonly #gone: () => void;
  #pasted: string | undefined; // text so far, during a paste
  #isOpen = true;

  /** `gone` is called when the input has ended. */
  constructor(
    terminal: { readonly stdin: Input; readonly stdout: Output },
    hear: (key: Key) => void,
    gone: () => void,
  ) {
    this.#input = terminal.stdin;
    this.#output = terminal.stdout;
    this.#hear = hear;
    this.#gone = gone;
    emitKeypressEvents(this.#input, { escapeCodeTimeout: ESCAPE_MS } as unknown as Interface);
    this.#input.on('keypress', this.#press);
    for (const name of ['end', 'close', 'error']) this.#input.on(name, this.#gone);
    this.#input.resume();
    this.#take();
  }

  /** Runs `work` with the terminal in its original mode. */
  aside(work: () => void): void {
    this.#giveBack();
    work();
    this.#take();
  }

  /** Restores the terminal. Synchronous, so it works right before the process exits. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#input.off('keypress', this.#press);
    for (const name of ['end', 'close', 'error']) this.#input.off(name, this.#gone);
    this.#giveBack();
    this.#input.pause();
  }

  #take(): void {
    this.#input.setRawMode?.(true);
    if (!isOutputGone(this.#output)) this.#output.write(PASTE_ON);
  }

  #giveBack(): void {
    this.#input.setRawMode?.(false);
    if (!isOutputGone(this.#output)) this.#output.write(PASTE_OFF);
  }

  readonly #press = (typed: string | undefined, pressed: Pressed): void => {
    const name = keyName(typed, pressed);
    if (name === 'paste-start') this.#pasted = '';
    else if (name === 'paste-end') this.#endPaste();
    else if (this.#pasted !== undefined) this.#paste(typed, name);
    else {
      // Node reports the Esc key alone as one with Alt.
      const [ctrl, meta] = [pressed.ctrl === true || name === '\\', pressed.meta === true && name !== 'escape'];
      this.#hear({ name, ctrl, meta, text: ctrl || meta ? '' : printableKey(typed) });
    }
  };

  #paste(typed: string | undefined, name: string): void {
    const piece = name === 'return' || name === 'enter' || name === 'tab' ? typed : printableKey(typed);
    if ((this.#pasted ?? '').length < PASTE_CHARS_MAX) this.#pasted = (this.#pasted ?? '') + (piece ?? '');
  }

  #endPaste(): void {
    const text = (this.#pasted ?? '').replaceAll(/\r\n?/g, '\n');
    this.#pasted = undefined;
    this.#hear({ name: 'paste', ctrl: false, meta: false, text });
  }
}

function keyName(typed: string | undefined, { name = '', shift = false }: Pressed): string {
  if (typed === CTRL_BACKSLASH) return '\\';
  return name === 'tab' && shift ? 'shift-tab' : name;
}

/** True for Ctrl-J and Alt-Enter. */
export function isNewlineKey(key: Key): boolean {
  return key.name === 'enter' || (key.name === 'return' && key.meta);
}

export function isCtrlKey(key: Key, name: string): boolean {
  return key.ctrl && key.name === name;
}

function printableKey(typed: string | undefined): string {
  return typed !== undefined && !/\p{Cc}/u.test(typed) ? typed : '';
}
