// What the agent of this command may do, and who is asked about the rest.

import type { SessionOptions } from '@drover/core/agent/session';
import type { Rule } from '@drover/core/permission/rules';
import type { Person } from './person.ts';

type Wishes = { readonly rules: readonly Rule[]; readonly yes: boolean; readonly gates: readonly string[] };

export function permissionFor(
  { yes, gates }: Wishes,
  person: Person | undefined,
): Pick<SessionOptions, 'judge' | 'question'> {
  return {
    judge: async (tool, input) => ({
      effect: tool.access === 'run' && !yes && !gates.includes(tool.subject(input)) ? 'ask' : 'allow',
      why: 'no rule allows it',
    }),
    question: async ({ requestId, subject, label: { name } }, signal) =>
      person !== undefined
        ? person.ask({ requestId, name, subject }, signal)
        : { allowed: false, by: 'nobody', always: false, reason: 'nobody is there to ask' },
  };
}
