// The keyboard while the dashboard is shown. The terminal is in raw mode, so no key is echoed into the picture.
//
// Guarantees
//   1. Ctrl-C, Ctrl-Z and Ctrl-\ send the signals that they send in normal mode, to the same processes.
//   2. Every other key goes to the dashboard, one at a time, and pasted text as one piece.
//   3. Keys typed before the keyboard was taken do nothing.
//   4. A job in the background does not touch the terminal: the kernel would stop it.
//
// A process that exits resets the terminal's mode: Node does so.

import { setImmediate as immediate } from 'node:timers/promises';
import type { Io, JobSignal } from '../../io.ts';
import { type Key, Keyboard } from '../../terminal/keyboard.ts';

const SIGNALS: ReadonlyMap<string, JobSignal> = new Map([
  ['c', 'SIGINT'],
  ['z', 'SIGTSTP'],
  ['\\', 'SIGQUIT'],
]);

// A read that is due happens once round the event loop; the first turn may already be past its reads.
const DROP_TURNS = 3;

export type KeysWatcher = {
  readonly pressed: (key: Key) => void;
  /** The shell has the terminal, or had it: what is on the screen is no longer known. */
  readonly released: () => void;
  readonly resumed: () => void;
};

type KeysIo = Pick<Io, 'stdin' | 'stdout' | 'job'>;

export class Keys {
  readonly #io: KeysIo;
  readonly #watcher: KeysWatcher;
  readonly #forget: () => void;
  #keyboard: Keyboard | undefined;
  #dropping: Keyboard | undefined; // still hands out keys that were typed before it was taken

  constructor(io: KeysIo, watcher: KeysWatcher) {
    this.#io = io;
    this.#watcher = watcher;
    this.#forget = io.job?.onContinue(this.#resumed) ?? (() => undefined);
    io.stdin.on('error', ignoreKeyboardSignal);
  }

  get isTaken(): boolean {
    return this.#keyboard !== undefined;
  }

  /** Takes the keyboard, if there is one. Idempotent. */
  take(): void {
    const { stdin, job } = this.#io;
    if (this.isTaken || stdin.isTTY !== true || job?.isForeground() !== true) return;
    // While the process was stopped, the shell may have changed the mode; Node believes that it is still raw.
    stdin.setRawMode?.(false);
    this.#keyboard = new Keyboard(this.#io, this.#hear, ignoreKeyboardSignal);
    void this.#dropEarlierKeys(this.#keyboard);
  }

  async #dropEarlierKeys(keyboard: Keyboard): Promise<void> {
    this.#dropping = keyboard;
    for (let turn = 0; turn < DROP_TURNS; turn++) await immediate();
    if (this.#dropping === keyboard) this.#dropping = undefined;
  }

  /** Gives the keyboard back, in normal mode. Idempotent. */
  giveBack(): void {
    this.#keyboard?.close();
    this.#keyboard = undefined;
  }

  close(): void {
    this.giveBack();
    this.#forget();
    this.#io.stdin.off('error', ignoreKeyboardSignal);
  }

  readonly #hear = (key: Key): void => {
    const signal = key.ctrl ? SIGNALS.get(key.name) : undefined;
    if (signal === undefined) return this.#dropping === undefined ? this.#watcher.pressed(key) : undefined;
    if (signal !== 'SIGINT') {
      this.giveBack();
      this.#watcher.released();
    }
    this.#io.job?.signal(signal);
  };

  readonly #resumed = (): void => {
    this.giveBack();
    this.#watcher.released();
    this.#watcher.resumed();
  };
}

function ignoreKeyboardSignal(): void {
  // A terminal that is gone is noticed by its output.
}
