// Admission: permission to send a request, taken before each attempt and returned after it.
//
// A standalone session needs only its budget. The workers of a run share one admission, which also enforces the
// provider's rate limits.

import { DroverError } from '../../errors.ts';
import type { Event } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { Budget, Reservation } from './budget.ts';
import type { Usage } from '@drover/protocol/messages';
import type { Price } from '../catalog.ts';
import type { Spent } from './spent.ts';
import { NO_USAGE } from './usage.ts';

export type Wanted = {
  readonly model?: string; // provider/name; absent if there is only one
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
  /** The usage that counts for an attempt; the estimate if omitted. */
  readonly charged?: (usage: Usage, seen: Seen) => Usage;
  /** Charges the attempt. Called once, whether the attempt succeeded or failed. */
  readonly settle: (usage: Usage, seen: Seen) => void;
};

export type Admission = {
  /** Throws DroverError if no request can be admitted any more, or the signal aborts. */
  readonly admit: (wanted: Wanted, signal: AbortSignal) => Promise<Admitted>;
};

export const overBudget = (): DroverError =>
  new DroverError({ kind: 'limit.reached', limit: 'budget', message: 'the budget does not allow another request' });

/** The warning, given once, when a request with a budget is cut off. */
export const CUT_OFF =
  'the provider does not report what a request costs that is cut off: the most that it can have cost counts as spent';

/** Returns true if the agent was stopped in the middle of the request, so that its usage is never reported. */
export function isSpendingCutOff({ failure }: Seen): boolean {
  return failure?.kind === 'aborted' || failure?.kind === 'limit.reached';
}

/** The parts of a session that its admission uses. */
export type BudgetNotes = {
  readonly emit: (event: Event) => void;
  /** Resolves when the emitted events are durable; throws as soon as the signal is aborted. */
  readonly settled: (signal: AbortSignal) => Promise<void>;
  /** Usage and cost of the session so far. */
  readonly total: () => Spent;
  /** The price of the model that the next request is for. */
  readonly price: () => Price | undefined;
};

/**
 * Admission for a standalone session. No other request returns budget, so it fails at once instead of waiting.
 * With a cap, each request is durable before it is sent, and one that is cut off is charged its reservation.
 */
export function admitByBudgetOnly(budget: Budget, notes: BudgetNotes): Admission {
  const isCapped = budget.cap !== undefined;
  let isCutOffTold = false;
  const tellCutOff = (): void => {
    if (!isCutOffTold) notes.emit({ type: 'warning', message: CUT_OFF });
    isCutOffTold = true;
  };
  return {
    admit: async ({ inputTokens, outputTokensMax }, signal) => {
      const reserved = budget.reserve(inputTokens, outputTokensMax, notes.price());
      if (reserved === undefined) throw overBudget();
      const { most, settle } = reserved;
      if (isCapped) await writeDownSpending(budget, reserved, { ...notes, signal });
      const charged = (usage: Usage, seen: Seen): Usage => {
        if (!isCapped || !isSpendingCutOff(seen)) return usage;
        tellCutOff();
        return most;
      };
      return { outputTokensMax: reserved.outputTokensMax, charged, settle };
    },
  };
}

/** Makes a request durable before it is sent, so that a killed session still counts it. */
async function writeDownSpending(
  budget: Budget,
  { most, mostCost, settle }: Reservation,
  { emit, settled, total, signal }: Omit<BudgetNotes, 'price'> & { readonly signal: AbortSignal },
): Promise<void> {
  const told = (): Extract<Event, { readonly type: 'budget' }> => {
    const { spent, reserved, cap } = budget;
    return { type: 'budget', ...total(), spent, reserved, ...(cap !== undefined && { cap }) };
  };
  emit({ ...told(), most, ...(mostCost !== undefined && { mostCost }) });
  try {
    await settled(signal);
  } catch (error) {
    settle(NO_USAGE);
    emit(told()); // nothing was sent
    throw error;
  }
}
