// Admission: permission to send a request, taken before each attempt and returned after it.
//
// A standalone session needs only its budget. The workers of a run share one admission, which also enforces the
// provider's rate limits.

import { DroverError } from '../../errors.ts';
import type { Failure } from '@drover/protocol/failures';
import type { Budget } from './budget.ts';
import type { Usage } from '@drover/protocol/messages';

export type Wanted = {
  readonly inputTokens: number; // upper bound
  readonly inputTokensExpected?: number; // drover's estimate
  readonly outputTokensMax: number;
};

/** The result of an attempt for admission: the response headers, or the failure. */
export type Seen = { readonly headers?: Readonly<Record<string, string>>; readonly failure?: Failure };

export type Admitted = {
  /** May be less than the caller asked for. */
  readonly outputTokensMax: number;
  /** Called when the answer begins, while the rate limits in its headers are still fresh. */
  readonly began?: (headers: Readonly<Record<string, string>>) => void;
  /** Charges the attempt. Called once, whether the attempt succeeded or failed. */
  readonly settle: (usage: Usage, seen: Seen) => void;
};

export type Admission = {
  /** Throws DroverError if no request can be admitted any more, or the signal aborts. */
  readonly admit: (wanted: Wanted, signal: AbortSignal) => Promise<Admitted>;
};

export const overBudget = (): DroverError =>
  new DroverError({ kind: 'limit.reached', limit: 'budget', message: 'the budget does not allow another request' });

/** Admission for a standalone session. No other request returns budget, so it fails at once instead of waiting. */
export function budgetOnly(budget: Budget): Admission {
  return {
    admit: async ({ inputTokens, outputTokensMax }) => {
      const reserved = budget.reserve(inputTokens, outputTokensMax);
      if (reserved === undefined) throw overBudget();
      return { outputTokensMax: reserved.outputTokensMax, settle: (usage) => reserved.settle(usage) };
    },
  };
}
