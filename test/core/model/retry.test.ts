// Retries: which failures, and how long to wait.

import type { Failure } from '@drover/protocol/failures';
import { defaultRetry, modelRetryDelayMs } from '@drover/core/model/retry';
import { expect, test } from 'vitest';

const busy = (retryAfterMs?: number): Failure => ({
  kind: 'provider.throttled',
  status: 429,
  message: 'slow down',
  ...(retryAfterMs !== undefined && { retryAfterMs }),
});

test('a requested wait is kept, plus at most a quarter', () => {
  for (const random of [0, 0.5, 0.999]) {
    const delay = modelRetryDelayMs(busy(2_000), { attempt: 1, random }, defaultRetry) ?? 0;
    expect(delay).toBeGreaterThanOrEqual(2_000);
    expect(delay).toBeLessThanOrEqual(2_500);
  }
});

test('a wait over the cap is not waited for', () => {
  expect(modelRetryDelayMs(busy(1_000_000_000), { attempt: 1, random: 0 }, defaultRetry)).toBeUndefined();
});

test('without retry-after the wait doubles, with jitter, up to a bound', () => {
  const delays = [1, 2, 3, 20].map((attempt) => modelRetryDelayMs(busy(), { attempt, random: 0.5 }, defaultRetry));
  expect(delays).toEqual([500, 1_000, 2_000, 32_000]);
  expect(modelRetryDelayMs(busy(), { attempt: 1, random: 0 }, defaultRetry)).not.toBe(
    modelRetryDelayMs(busy(), { attempt: 1, random: 0.9 }, defaultRetry),
  );
});

test.each<Failure>([
  { kind: 'provider.rejected', status: 400, message: 'bad' },
  { kind: 'context.overflow', message: 'long' },
  { kind: 'answer.refused', message: 'no' },
  { kind: 'aborted', by: 'user' },
])('%s is never retried', (failure) => {
  expect(modelRetryDelayMs(failure, { attempt: 1, random: 0.5 }, defaultRetry)).toBeUndefined();
});
