// The person at the terminal, who is asked whether a call may run.
//
// There is one where standard input and standard error are both a terminal, and in a chat. A question is
// asked only once the view has shown what led to it. While it stands there, the view waits, so that nothing
// is painted over it.

import type { Question } from '@drover/core/agent/calls/calls';
import type { Shown } from '@drover/core/bus';
import type { UserAnswer } from '@drover/core/permission/questions';
import type { Io } from '../io.ts';
import { questionText } from '../views/text/question-text.ts';
import { cleanText, writeOutControls } from '../views/text/terminal-text.ts';
import { type Lines, typedLines, untilAborted } from './typed-lines.ts';

const CHOICES = '[y]es [n]o [a]lways: ';
const COLUMNS_DEFAULT = 80;

const YES: UserAnswer = { allowed: true, always: false };
const NO: UserAnswer = { allowed: false, always: false };
const ALWAYS: UserAnswer = { allowed: true, always: true };
const ANSWERS = new Map([
  ['y', YES],
  ['yes', YES],
  ['n', NO],
  ['no', NO],
  ['a', ALWAYS],
  ['always', ALWAYS],
]);

/** Shows the change that a call would make, as whole lines to print above the question. */
export type Preview = (question: Question) => Promise<string>;

export class Person {
  readonly #lines: Lines;
  readonly #columns: () => number;
  readonly #preview: Preview;
  #isWatching = true;
  readonly #requests = new Map<string, PromiseWithResolvers<void>>(); // settled once they are shown
  readonly #asking = new Set<string>(); // requests that are, or are about to be, put to the person
  #standing: PromiseWithResolvers<void> | undefined; // settled once the question is answered

  constructor(lines: Lines, columns: () => number | undefined, preview: Preview = async () => '') {
    this.#lines = lines;
    this.#preview = preview;
    this.#columns = () => columns() ?? COLUMNS_DEFAULT;
  }

  static isAt({ stdin, stderr }: Io): boolean {
    return stdin.isTTY === true && stderr.isTTY === true;
  }

  static at(io: Io): Person | undefined {
    if (!Person.isAt(io)) return undefined;
    return new Person(typedLines(io), () => io.stderr.columns);
  }

  /** The view has come to this event. */
  sees(event: Shown): void {
    if (event.type !== 'permission_request') return;
    if (this.#asking.has(event.requestId)) this.#standing ??= Promise.withResolvers();
    this.#shown(event.requestId).resolve();
  }

  /** No question is on the screen. */
  async untilUnasked(): Promise<void> {
    while (this.#standing !== undefined) await this.#standing.promise;
  }

  /** The view shows something again. */
  seesMore(): void {
    this.#isWatching = true;
  }

  /** The view shows nothing more, and is not to be waited for. */
  seesNoMore(): void {
    this.#isWatching = false;
    for (const shown of this.#requests.values()) shown.resolve();
  }

  /** Asks one question at a time. Undefined if it was withdrawn; a user who has gone says no. */
  async ask(question: Question, signal: AbortSignal): Promise<UserAnswer | undefined> {
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

  /** A question that belongs to no call. Undefined without an answer. */
  async choose<Choice>(
    words: string,
    choices: ReadonlyMap<string, Choice>,
    signal: AbortSignal,
  ): Promise<Choice | undefined> {
    await this.untilUnasked();
    this.#standing = Promise.withResolvers();
    try {
      return await this.#answer(words, choices, signal);
    } finally {
      this.#standing?.resolve();
      this.#standing = undefined;
    }
  }

  /** Returns a line of the user's own words; undefined if there is no answer. */
  async line(words: string, signal: AbortSignal): Promise<string | undefined> {
    await this.untilUnasked();
    this.#standing = Promise.withResolvers();
    try {
      return this.#lines.isGone() ? undefined : await this.#lines.ask(words, signal);
    } finally {
      this.#standing?.resolve();
      this.#standing = undefined;
    }
  }

  close(): void {
    this.#lines.close();
  }

  async #put(question: Question, signal: AbortSignal): Promise<UserAnswer | undefined> {
    if (question.field !== undefined) return this.#value(question, signal);
    const words = `${await this.#preview(question)}${this.#worded(question)}`;
    const answer = await this.#answer(words, ANSWERS, signal);
    return answer ?? (signal.aborted ? undefined : NO);
  }

  /** A line of words; an empty one takes the default. The end of the input says no. */
  async #value(question: Question, signal: AbortSignal): Promise<UserAnswer | undefined> {
    const words = `${writeOutControls(question.subject).replaceAll(/^/gm, '  ')}\n  ${cleanText(question.field?.name ?? '')}: `;
    const line = this.#lines.isGone() ? undefined : await this.#lines.ask(words, signal);
    if (line !== undefined) return { allowed: true, always: false, words: line };
    return signal.aborted ? undefined : NO;
  }

  /** Asked until there is one; undefined where there will be none. */
  async #answer<Choice>(
    words: string,
    choices: ReadonlyMap<string, Choice>,
    signal: AbortSignal,
  ): Promise<Choice | undefined> {
    while (!this.#lines.isGone() && !signal.aborted) {
      const line = await this.#lines.ask(words, signal);
      const answer = choices.get((line ?? '').trim().toLowerCase());
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  // Shown in full, however long: the user must see what they approve.
  #worded(question: Question): string {
    const { task } = question;
    const { name } = question.label;
    const whole = questionText(question);
    const what = task === undefined ? name : `${task} to use ${name}`;
    const short = `  Allow ${what}: ${whole}? ${CHOICES}`;
    if (!whole.includes('\n') && short.length <= this.#columns()) return short;
    return `  Allow ${what}:\n${whole.replaceAll(/^/gm, '    ')}\n  ${CHOICES}`;
  }

  #shown(requestId: string): PromiseWithResolvers<void> {
    const shown = this.#requests.get(requestId) ?? Promise.withResolvers<void>();
    this.#requests.set(requestId, shown);
    return shown;
  }
}
