// The person at the terminal, who is asked whether a call may run.
//
// There is one where standard input and standard error are both a terminal. It stays in its normal
// mode, so Ctrl-C is a signal as ever and nothing has to be restored. What was typed before a question
// was asked is no answer to it, and a question is asked only once the view has shown what led to it.

import { createInterface, type Interface } from 'node:readline';
import type { Shown } from '@drover/core/bus';
import type { Decision } from '@drover/core/events';
import { type Io, print } from '../io.ts';
import { writtenOut } from '../views/terminal-text.ts';

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

export type Asked = { readonly requestId: string; readonly name: string; readonly subject: string };

export class Person {
  readonly #io: Io;
  #lines: Interface | undefined; // from the first question on
  #isGone = false;
  #isWatching = true;
  readonly #requests = new Map<string, PromiseWithResolvers<void>>(); // settled once they are shown
  #hear: (line: string | undefined) => void = () => undefined;

  private constructor(io: Io) {
    this.#io = io;
  }

  static at(io: Io): Person | undefined {
    return io.stdin.isTTY === true && io.stderr.isTTY === true ? new Person(io) : undefined;
  }

  /** The view has come to this event. */
  sees(event: Shown): void {
    if (event.type === 'permission_request') this.#shown(event.requestId).resolve();
  }

  /** The view shows nothing more, and is not to be waited for. */
  seesNoMore(): void {
    this.#isWatching = false;
    for (const shown of this.#requests.values()) shown.resolve();
  }

  /** One question; the caller asks one at a time. */
  async ask(what: Asked, signal: AbortSignal): Promise<Decision> {
    if (this.#isWatching) await untilAborted(this.#shown(what.requestId).promise, signal);
    this.#open();
    const question = this.#worded(what);
    while (!this.#isGone && !signal.aborted) {
      const line = this.#nextLine(signal);
      await print(this.#io.stderr, question);
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

  // All of it, however long: nobody shall agree to what they could not see.
  #worded({ name, subject }: Asked): string {
    const whole = writtenOut(subject);
    const short = `  Allow ${name}: ${whole}? ${CHOICES}`;
    if (!whole.includes('\n') && short.length <= (this.#io.stderr.columns ?? COLUMNS_DEFAULT)) return short;
    return `  Allow ${name}:\n${whole.replaceAll(/^/gm, '    ')}\n  ${CHOICES}`;
  }

  #shown(requestId: string): PromiseWithResolvers<void> {
    const shown = this.#requests.get(requestId) ?? Promise.withResolvers<void>();
    this.#requests.set(requestId, shown);
    return shown;
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
    this.#hear = resolve;
    try {
      return await untilAborted(promise, signal);
    } finally {
      this.#hear = () => undefined;
    }
  }
}

async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
  const aborted = Promise.withResolvers<undefined>();
  const onAbort = (): void => aborted.resolve(undefined);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
