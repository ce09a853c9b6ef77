// What the agent of this command may do, and who is asked about the rest.

import type { SessionOptions } from '@drover/core/agent/session';
import type { Io } from '../io.ts';
import { askPerson, isSomeoneThere } from './question.ts';

export type Rules = {
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
  readonly yes: boolean;
};

export function permissionFor(
  { rules }: { readonly rules: Rules },
  io: Io,
): Pick<SessionOptions, 'judge' | 'question'> {
  return {
    judge: async (tool) => ({
      effect: tool.access === 'run' && !rules.yes ? 'ask' : 'allow',
      why: 'no rule allows it',
    }),
    question: async ({ label }, signal) =>
      isSomeoneThere(io)
        ? askPerson(io, label.summary, signal)
        : { allowed: false, by: 'nobody', always: false, reason: 'nobody is there to ask' },
  };
}
