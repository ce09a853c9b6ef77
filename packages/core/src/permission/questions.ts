// Questions to the user: a queue that shows one question at a time and answers each once.
//
// Guarantees
//   1. A question ends when it is answered, when its call is cancelled, or when the queue is closed.
//   2. An "always" answer holds for the rest of the run, for exactly that tool and subject. It also answers
//      equal questions that are already waiting.
//   3. Without a terminal, a question is denied at once. The reason says how to allow the call next time.
//
// Shutdown: a stopping server leaves its questions open (`leaveOpen`). They get no decision, and the next server
// asks them again.

import type { Question } from '../agent/calls/calls.ts';
import type { Decision } from '@drover/protocol/events';
import { permissionAnswerKey } from './policy.ts';
import { ruleHintFor } from './rule-hint.ts';

/** `words`: what the user says to the agent with a no, or the value of a field with a yes. */
export type UserAnswer = { readonly allowed: boolean; readonly always: boolean; readonly words?: string };

/** With the words that answer a field. They are in no event. */
type Answered = Decision & { readonly words?: string };

type Waiting = { readonly question: Question; readonly settle: (decision: Answered | undefined) => void };

export class Questions {
  readonly #onAsk: ((question: Question) => void) | undefined;
  readonly #queue: Waiting[] = [];
  readonly #remembered = new Map<string, boolean>();
  #shown: Waiting | undefined;
  #isClosed = false;
  #isLeft = false;

  /** `onAsk` receives one question at a time; undefined if there is no terminal to ask on. */
  constructor(onAsk: ((question: Question) => void) | undefined) {
    this.#onAsk = onAsk;
  }

  /** "Always" answers, for the policy: it then asks no question at all. */
  get remembered(): ReadonlyMap<string, boolean> {
    return this.#remembered;
  }

  /** The question that is currently shown. */
  get current(): Question | undefined {
    return this.#shown?.question;
  }

  /** The number of questions that wait, the current one included. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Asks and returns the decision. A question that is left open counts as cancelled. */
  async ask(question: Question, signal: AbortSignal): Promise<Answered> {
    return (await this.askOrLeave(question, signal)) ?? CANCELLED;
  }

  /** Resolves to undefined if the question is left open. */
  async askOrLeave(question: Question, signal: AbortSignal): Promise<Answered | undefined> {
    if (this.#isLeft) return undefined;
    if (this.#isClosed || signal.aborted) return CANCELLED;
    const answered = this.#remembered.get(permissionQuestionKey(question));
    if (answered !== undefined) return { allowed: answered, by: 'user', always: true };
    if (this.#onAsk === undefined) return permissionUnanswered(question);

    const { promise, resolve } = Promise.withResolvers<Answered | undefined>();
    const waiting = { question, settle: resolve };
    const onAbort = () => this.#settle(waiting, CANCELLED);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#queue.push(waiting);
    this.#showNext();
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Returns false if the question is no longer waiting. */
  answer(requestId: string, { allowed, always, words = '' }: UserAnswer): boolean {
    const waiting = this.#queue.find(({ question }) => question.requestId === requestId);
    if (waiting === undefined) return false;
    const reason = allowed || words.trim() === '' ? {} : { reason: `the user said no: ${words.trim()}` };
    const isField = waiting.question.field !== undefined;
    const value = isField && allowed ? { words } : {};
    const decision: Answered = { allowed, by: 'user', always: always && !isField, ...reason, ...value };
    const key = permissionQuestionKey(waiting.question);
    const alike = decision.always
      ? this.#queue.filter(({ question }) => permissionQuestionKey(question) === key)
      : [waiting];
    if (decision.always) this.#remembered.set(key, allowed);
    for (const each of alike) this.#remove(each, decision);
    this.#showNext();
    return true;
  }

  /** Releases all waiting questions, and all later ones, without a decision. */
  leaveOpen(): void {
    this.#isLeft = true;
    for (const waiting of this.#queue.splice(0)) waiting.settle(undefined);
    this.#shown = undefined;
  }

  /** Cancels all waiting questions and all later ones. */
  close(): void {
    this.#isClosed = true;
    for (const waiting of this.#queue.splice(0)) waiting.settle(CANCELLED);
    this.#shown = undefined;
  }

  #settle(waiting: Waiting, decision: Decision): void {
    this.#remove(waiting, decision);
    this.#showNext();
  }

  #remove(waiting: Waiting, decision: Answered): void {
    const at = this.#queue.indexOf(waiting);
    if (at === -1) return;
    this.#queue.splice(at, 1);
    if (this.#shown === waiting) this.#shown = undefined;
    waiting.settle(decision);
  }

  #showNext(): void {
    if (this.#shown !== undefined) return;
    const [next] = this.#queue;
    this.#shown = next;
    if (next !== undefined) this.#onAsk?.(next.question);
  }
}

const CANCELLED: Decision = {
  allowed: false,
  by: 'cancel',
  always: false,
  reason: 'interrupted before it was allowed',
};

function permissionQuestionKey({ tool, subject }: Question): string {
  return permissionAnswerKey(tool, subject);
}

async function permissionUnanswered(question: Question): Promise<Decision> {
  const reason = `${question.why}, and there is no terminal to ask on; ${await ruleHintFor(question)}`;
  return { allowed: false, by: 'nobody', always: false, reason };
}
