// Retry policy: whether to retry a failed request, and after which delay. Pure: agent/ask.ts does the waiting.

import { type Failure, FAILURES } from '@drover/protocol/failures';

export type RetryPolicy = {
  readonly attemptsMax: number;
  readonly backoffMs: number; // the first delay; each later one doubles
  readonly backoffMsMax: number;
  readonly waitMsMax: number; // if the server asks for more, the turn ends instead of waiting
  readonly wallMsMax: number; // over all attempts of one request
};

export const defaultRetry: RetryPolicy = {
  attemptsMax: 8,
  backoffMs: 500,
  backoffMsMax: 32_000,
  waitMsMax: 120_000,
  wallMsMax: 600_000,
};

/** Milliseconds to wait before the next attempt; undefined if the failure is permanent. `random` is in [0, 1). */
export function modelRetryDelayMs(
  failure: Failure,
  { attempt, random }: { readonly attempt: number; readonly random: number },
  policy: RetryPolicy,
): number | undefined {
  const { retry } = FAILURES[failure.kind];
  if (retry === 'never') return undefined;
  const asked = 'retryAfterMs' in failure ? failure.retryAfterMs : undefined;
  if (asked === undefined) return modelRetryBackoff(attempt, policy, random);
  // Adds up to a fifth, so that waiting workers do not all retry at once.
  return asked > policy.waitMsMax ? undefined : asked * (1 + random * 0.2);
}

function modelRetryBackoff(attempt: number, policy: RetryPolicy, random: number): number {
  const full = Math.min(policy.backoffMsMax, policy.backoffMs * 2 ** (attempt - 1));
  return full * (0.75 + random * 0.5);
}
