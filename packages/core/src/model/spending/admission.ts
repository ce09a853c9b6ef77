// Leave to send a request: asked for before each attempt, given back after it.
//
// A session by itself needs no more than its budget; the workers of a run share one admission, which
// also holds them to what the provider allows.

import { DroverError } from '../../errors.ts';
import type { Failure } from '@drover/protocol/failures';
import type { Budget } from './budget.ts';
import type { Usage } from '@drover/protocol/messages';

export type Wanted = {
  readonly inputTokens: number; // at most
  readonly inputTokensExpected?: number; // by our own estimate
  readonly outputTokensMax: number;
};

/** What an attempt showed of the provider: the headers of its answer, or why there was none. */
export type Seen = { readonly headers?: Readonly<Record<string, string>>; readonly failure?: Failure };

export type Admitted = {
  /** May be less than was wanted. */
  readonly outputTokensMax: number;
  /** The answer has begun. What its headers say is news now, and may be old when it ends. */
  readonly began?: (headers: Readonly<Record<string, string>>) => void;
  /** Once, whatever came of the attempt. */
  readonly settle: (usage: Usage, seen: Seen) => void;
};

export type Admission = {
  /** Throws DroverError where there will be no leave any more, or the signal says stop. */
  readonly admit: (wanted: Wanted, signal: AbortSignal) => Promise<Admitted>;
};

export const overBudget = (): DroverError =>
  new DroverError({ kind: 'limit.reached', limit: 'budget', message: 'the budget does not allow another request' });

/** For a session of its own, where nobody else gives anything back: what doesn't fit now never will. */
export function budgetOnly(budget: Budget): Admission {
  return {
    admit: async ({ inputTokens, outputTokensMax }) => {
      const reserved = budget.reserve(inputTokens, outputTokensMax);
      if (reserved === undefined) throw overBudget();
      return { outputTokensMax: reserved.outputTokensMax, settle: (usage) => reserved.settle(usage) };
    },
  };
}
