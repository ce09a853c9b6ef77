// The person at the terminal, who is asked whether a call may run.
//
// There is one where standard input and standard error are both a terminal. It stays in its normal
// mode, so Ctrl-C is a signal as ever and nothing has to be restored. What was typed before a question
// was asked is no answer to it, and a question is asked only once the view has shown what led to it. While
// it stands there, the view waits, so that nothing is painted over it.

import { createInterface, type Interface } from 'node:readline';
import type { Question } from '@drover/core/agent/calls';
import type { Shown } from '@drover/core/bus';
import type { Answer } from '@drover/core/permission/questions';
import { type Io, print } from '../io.ts';
import { writtenOut } from '../views/terminal-text.ts';

const CHOICES = '[y]es [n]o [a]lways: ';
const COLUMNS_DEFAULT = 80;

const YES: Answer = { allowed: true, always: false };
const NO: Answer = { allowed: false, always: false };
const ALWAYS: Answer = { allowed: true, always: true };
const ANSWERS = new Map([
  ['y', YES],
  ['yes', YES],
  ['n', NO],
  ['no', NO],
  ['a', ALWAYS],
  ['always', ALWAYS],
]);

export class Person {
  readonly #io: Io;
  #lines: Interface | undefined; // from the first question on
  #isGone = false;
  #isWatching = true;
  readonly #requests = new Map<string, PromiseWithResolvers<void>>(); // settled once they are shown
  readonly #asking = new Set<string>(); // requests that are, or are about to be, put to the person
  #standing: PromiseWithResolvers<void> | undefined; // settled once the question is answered
  #hear: (line: string | undefined) => void = () => undefined;

  private constructor(io: Io) {
    this.#io = io;
  }

  static at(io: Io): Person | undefined {
    return io.stdin.isTTY === true && io.stderr.isTTY === true ? new Person(io) : undefined;
  }

  /** The view has come to this event. */
  sees(event: Shown): void {
    if (event.type !== 'permission_request') return;
    if (this.#asking.has(event.requestId)) this.#standing ??= Promise.withResolvers();
    this.#shown(event.requestId).resolve();
  }

  /** No question stands on the screen. */
  async untilUnasked(): Promise<void> {
    while (this.#standing !== undefined) await this.#standing.promise;
  }

  /** The view shows nothing more, and is not to be waited for. */
  seesNoMore(): void {
    this.#isWatching = false;
    for (const shown of this.#requests.values()) shown.resolve();
  }

  /** One question at a time. Undefined where it was withdrawn; somebody who has gone says no. */
  async ask(question: Question, signal: AbortSignal): Promise<Answer | undefined> {
    this.#asking.add(question.requestId);
    try {
      if (this.#isWatching) await untilAborted(this.#shown(question.requestId).promise, signal);
      this.#standing ??= Promise.withResolvers();
      return await this.#put(question, signal);
    } finally {
      this.#asking.delete(question.requestId);
      this.#standing?.resolve();
      this.#standing = undefined;
    }
  }

  /** A question that no call has put. Undefined where nobody answers. */
  async choose<Choice>(
    words: string,
    choices: ReadonlyMap<string, Choice>,
    signal: AbortSignal,
  ): Promise<Choice | undefined> {
    await this.untilUnasked();
    this.#standing = Promise.withResolvers();
    try {
      this.#open();
      while (!this.#isGone && !signal.aborted) {
        const line = this.#nextLine(signal);
        await print(this.#io.stderr, words);
        const answer = choices.get(((await line) ?? '').trim().toLowerCase());
        if (answer !== undefined) return answer;
      }
      await print(this.#io.stderr, '\n');
      return undefined;
    } finally {
      this.#standing?.resolve();
      this.#standing = undefined;
    }
  }

  close(): void {
    this.#lines?.close();
  }

  async #put(question: Question, signal: AbortSignal): Promise<Answer | undefined> {
    this.#open();
    const words = this.#worded(question);
    while (!this.#isGone && !signal.aborted) {
      const line = this.#nextLine(signal);
      await print(this.#io.stderr, words);
      const answer = ANSWERS.get(((await line) ?? '').trim().toLowerCase());
      if (answer !== undefined) return answer;
    }
    // The question is left without an answer, so its line is still open.
    await print(this.#io.stderr, '\n');
    return signal.aborted ? undefined : NO;
  }

  // All of it, however long: nobody shall agree to what they could not see.
  #worded({ label: { name }, subject, task }: Question): string {
    const whole = writtenOut(subject);
    const what = task === undefined ? name : `${task} to use ${name}`;
    const short = `  Allow ${what}: ${whole}? ${CHOICES}`;
    if (!whole.includes('\n') && short.length <= (this.#io.stderr.columns ?? COLUMNS_DEFAULT)) return short;
    return `  Allow ${what}:\n${whole.replaceAll(/^/gm, '    ')}\n  ${CHOICES}`;
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
