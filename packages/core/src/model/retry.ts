// When to ask again after a failure, and how long to wait first. Pure: agent/ask.ts does the waiting.

import type { Failure } from '../failure.ts';

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
  switch (failure.kind) {
    case 'provider.throttled':
    case 'provider.unavailable': {
      const asked = failure.retryAfterMs;
      if (asked === undefined) return backoff(attempt, policy, random);
      // At least what was asked for, at most a quarter more, so that those who wait don't come back as one.
      return asked > policy.waitMsMax ? undefined : asked * (1 + random * 0.2);
    }
    case 'provider.garbled':
    case 'provider.stalled':
      return backoff(attempt, policy, random);
    case 'aborted':
    case 'provider.rejected':
    case 'request.unmade':
    case 'context.overflow':
    case 'answer.empty':
    case 'answer.refused':
    case 'answer.paused':
    case 'tool.unknown':
    case 'answer.text_call':
    case 'compaction.failed':
    case 'internal':
    case 'journal.busy':
    case 'journal.damaged':
    case 'journal.newer':
    case 'limit.reached':
    case 'gate.failed':
    case 'setup.failed':
    case 'sandbox.failed':
    case 'permission.denied':
    case 'plan.declined':
    case 'worker.lost':
    case 'git.failed':
    case 'workspace.failed':
    case 'store.failed':
    case 'checkout.changed':
      return undefined;
  }
}

function backoff(attempt: number, policy: RetryPolicy, random: number): number {
  const full = Math.min(policy.backoffMsMax, policy.backoffMs * 2 ** (attempt - 1));
  return full * (0.75 + random * 0.5);
}
