// Keys typed while the dashboard is shown. The terminal is in raw mode, so none is echoed into the picture.
//
// Guarantees
//   1. Ctrl-C, Ctrl-Z and Ctrl-\ send the signals that they send in normal mode, to the same processes.
//   2. Every other key is dropped, so none answers a question that comes later.
//   3. A job in the background does not touch the terminal: the kernel would stop it.
//
// A process that exits resets the terminal's mode: Node does so.

import type { Io, JobSignal } from '../../io.ts';

const SIGNALS: ReadonlyMap<number, JobSignal> = new Map([
  [0x03, 'SIGINT'],
  [0x1a, 'SIGTSTP'],
  [0x1c, 'SIGQUIT'],
]);

export type KeysWatcher = {
  /** The shell has the terminal, or had it: what is on the screen is no longer known. */
  readonly released: () => void;
  readonly resumed: () => void;
};

export class Keys {
  readonly #io: Pick<Io, 'stdin' | 'job'>;
  readonly #watcher: KeysWatcher;
  readonly #forget: () => void;
  #isTaken = false;

  constructor(io: Pick<Io, 'stdin' | 'job'>, watcher: KeysWatcher) {
    this.#io = io;
    this.#watcher = watcher;
    this.#forget = io.job?.onContinue(this.#resumed) ?? (() => undefined);
    io.stdin.on('error', ignored);
  }

  /** Takes the keyboard, if there is one. Idempotent. */
  take(): void {
    const { stdin, job } = this.#io;
    if (this.#isTaken || stdin.isTTY !== true || job?.isForeground() !== true) return;
    this.#isTaken = true;
    // While the process was stopped, the shell may have changed the mode; Node believes that it is still raw.
    stdin.setRawMode?.(false);
    stdin.setRawMode?.(true);
    stdin.on('data', this.#hear);
    stdin.resume();
  }

  /** Gives the keyboard back, in normal mode. Idempotent. */
  giveBack(): void {
    if (!this.#isTaken) return;
    this.#release();
    this.#io.stdin.setRawMode?.(false);
  }

  close(): void {
    this.giveBack();
    this.#forget();
    this.#io.stdin.off('error', ignored);
  }

  #release(): void {
    this.#isTaken = false;
    this.#io.stdin.off('data', this.#hear);
    this.#io.stdin.pause();
  }

  readonly #hear = (chunk: Buffer | string): void => {
    for (const byte of Buffer.from(chunk)) {
      const signal = SIGNALS.get(byte);
      if (signal === undefined) continue;
      if (signal !== 'SIGINT') {
        this.giveBack();
        this.#watcher.released();
      }
      this.#io.job?.signal(signal);
    }
  };

  readonly #resumed = (): void => {
    if (this.#isTaken) this.#release();
    this.#watcher.released();
    this.#watcher.resumed();
  };
}

function ignored(): void {
  // A terminal that is gone is noticed by its output.
}
