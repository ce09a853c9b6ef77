// The permission policy of this command's agent, and how the user is asked about the rest.

import type { Question } from '@drover/core/agent/calls/calls';
import type { SessionOptions } from '@drover/core/session/session-options';
import { judgeCall, type Policy } from '@drover/core/permission/policy';
import { Questions } from '@drover/core/permission/questions';
import type { Rule } from '@drover/core/permission/rules';
import { deniedInChatMode, type Mode, policyInChatMode } from '../chat/mode.ts';
import type { Person } from './person.ts';

type Wishes = {
  readonly cwd: string;
  readonly rules: readonly Rule[];
  readonly yes: boolean;
  readonly contained: boolean;
  /** Paths that git runs something from. */
  readonly runLater: readonly string[];
  /** Asked before each call; absent outside chats. */
  readonly mode?: () => Mode;
};

/** Asks the user, and remembers answers that apply from now on. */
export type Asked = Pick<Questions, 'ask' | 'remembered'>;

/** The same for a session, which can leave a question open. */
export type SessionAsked = Pick<Asked, 'remembered'> & { readonly ask: SessionOptions['question'] };

export function terminalPermission(wishes: Wishes, asked: SessionAsked): Pick<SessionOptions, 'judge' | 'question'> {
  const { cwd: root, rules, yes, contained, runLater } = wishes;
  // A user who starts an agent in a folder wants it to write there.
  const policy: Policy = {
    root,
    rules,
    yes,
    contained,
    workspace: true,
    isOwnFolder: true,
    runLater,
    remembered: asked.remembered,
  };
  return {
    judge: async (tool, input) => {
      const mode = wishes.mode?.() ?? 'edit';
      return deniedInChatMode(mode, tool) ?? judgeCall(policyInChatMode(mode, policy), tool, input);
    },
    question: (question, signal) => asked.ask(question, signal),
  };
}

/** The person at the terminal; without one, whatever has to be asked is refused. */
export function terminalQuestions(person: Person | undefined): Asked {
  const signals = new Map<string, AbortSignal>(); // requestId -> what withdraws the question
  const put = async (question: Question, to: Person): Promise<void> => {
    const signal = signals.get(question.requestId);
    const answer = signal && (await to.ask(question, signal));
    if (answer !== undefined) questions.answer(question.requestId, answer);
  };
  const questions = new Questions(person && ((question) => void put(question, person)));
  return {
    remembered: questions.remembered,
    ask: async (question, signal) => {
      signals.set(question.requestId, signal);
      try {
        return await questions.ask(question, signal);
      } finally {
        signals.delete(question.requestId);
      }
    },
  };
}
