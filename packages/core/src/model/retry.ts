// When to ask again after a failure, and how long to wait first. Pure: agent/ask.ts does the waiting.

import { type Failure, FAILURES } from '@drover/protocol/failures';

export type RetryPolicy = {
  readonly attemptsMax: number;
  readonly backoffMs: number; // the first wait; each further one is twice as long
  readonly backoffMsMax: number;
  readonly waitMsMax: number; // a server that asks for more is taken at its word: the turn ends and says so
  readonly wallMsMax: number; // over all attempts at one request
};

export const defaultRetry: RetryPolicy = {
  attemptsMax: 8,
  backoffMs: 500,
  backoffMsMax: 32_000,
  waitMsMax: 120_000,
  wallMsMax: 600_000,
};

/** How long to wait before trying again, or undefined where trying again cannot help. `random` is in [0, 1). */
export function retryDelayMs(
  failure: Failure,
  attempt: number,
  policy: RetryPolicy,
  random: number,
): number | undefined {
  const { retry } = FAILURES[failure.kind];
  if (retry === 'never') return undefined;
  const asked = 'retryAfterMs' in failure ? failure.retryAfterMs : undefined;
  if (asked === undefined) return backoff(attempt, policy, random);
  // At least what was asked for, at most a fifth more, so that the waiting workers don't come back as one.
  return asked > policy.waitMsMax ? undefined : asked * (1 + random * 0.2);
}

function backoff(attempt: number, policy: RetryPolicy, random: number): number {
  const full = Math.min(policy.backoffMsMax, policy.backoffMs * 2 ** (attempt - 1));
  return full * (0.75 + random * 0.5);
}
