// The person at the terminal, who is asked whether a call may run.
//
// There is one where standard input and standard error are both a terminal. It stays in its normal
// mode, so Ctrl-C is a signal as ever and nothing has to be restored. What was typed before a question
// was asked is no answer to it.

import { createInterface, type Interface } from 'node:readline';
import type { Decision } from '@drover/core/events';
import { type Io, print } from '../io.ts';
import { oneLine } from '../views/terminal-text.ts';

const CHOICES = '[y]es [n]o [a]lways: ';
const COLUMNS_DEFAULT = 80;

const YES: Decision = { allowed: true, by: 'user', always: false };
const NO: Decision = { allowed: false, by: 'user', always: false };
const ALWAYS: Decision = { allowed: true, by: 'user', always: true };
const ANSWERS = new Map([
  ['y', YES],
  ['yes', YES],
  ['n', NO],
  ['no', NO],
  ['a', ALWAYS],
  ['always', ALWAYS],
]);
const GONE: Decision = { allowed: false, by: 'nobody', always: false, reason: 'nobody is there to ask any more' };
const CANCELLED: Decision = { allowed: false, by: 'cancel', always: false, reason: 'interrupted' };

export class Person {
  readonly #io: Io;
  #lines: Interface | undefined; // from the first question on
  #isGone = false;
  #hear: (line: string | undefined) => void = () => undefined;

  private constructor(io: Io) {
    this.#io = io;
  }

  static at(io: Io): Person | undefined {
    return io.stdin.isTTY === true && io.stderr.isTTY === true ? new Person(io) : undefined;
  }

  /** One question; the caller asks one at a time. */
  async ask(summary: string, signal: AbortSignal): Promise<Decision> {
    this.#open();
    const columns = (this.#io.stderr.columns ?? COLUMNS_DEFAULT) - CHOICES.length - '  Allow ? '.length;
    while (!this.#isGone && !signal.aborted) {
      const line = this.#nextLine(signal);
      await print(this.#io.stderr, `  Allow ${oneLine(summary, columns)}? ${CHOICES}`);
      const decision = ANSWERS.get(((await line) ?? '').trim().toLowerCase());
      if (decision !== undefined) return decision;
    }
    // The question is left without an answer, so its line is still open.
    await print(this.#io.stderr, '\n');
    return signal.aborted ? CANCELLED : GONE;
  }

  close(): void {
    this.#lines?.close();
  }

  #open(): void {
    if (this.#lines !== undefined) return;
    this.#lines = createInterface({ input: this.#io.stdin, terminal: false });
    this.#lines.on('line', (line) => this.#hear(line));
    this.#lines.on('close', () => {
      this.#isGone = true;
      this.#hear(undefined);
    });
  }

  async #nextLine(signal: AbortSignal): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const onAbort = (): void => resolve(undefined);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#hear = resolve;
    try {
      return await promise;
    } finally {
      this.#hear = () => undefined;
      signal.removeEventListener('abort', onAbort);
    }
  }
}
