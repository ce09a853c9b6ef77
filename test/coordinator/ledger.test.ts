// What requests under way take of a limit, while nobody knows whether they have arrived.

import { Ledger } from '@drover/coordinator/admission/ledger';
import type { Rate } from '@drover/coordinator/admission/rate-headers';
import { expect, test } from 'vitest';

const WANTED = { inputTokens: 10, outputTokensMax: 10 };
const LIMIT = 12;
const WINDOW_MS = 250;

function rate(remaining: number): Rate {
  const resetMs = ((LIMIT - remaining) / LIMIT) * WINDOW_MS;
  return { name: 'requests', limit: LIMIT, remaining, resetMs, countsCacheReads: true };
}

/** One answer has been seen, and the bucket is as good as full. */
function seen(): Ledger {
  const ledger = new Ledger();
  const first = ledger.depart(WANTED, 0);
  ledger.report(first, [rate(LIMIT - 2)], 1);
  ledger.land(first, undefined, 2);
  return ledger;
}

test('a full bucket gains nothing while requests are on their way: no more are sent than it can hold', () => {
  const ledger = seen();
  const late = 10 * WINDOW_MS;
  const flights = Array.from({ length: LIMIT }, () => ledger.depart(WANTED, late));
  // However long they take: they may all arrive in the same moment.
  const later = late + 10 * WINDOW_MS;
  expect(ledger.shortage(WANTED, later)).toEqual({ name: 'requests', waitMs: undefined });

  // One that was answered has arrived, and what was refilled since is there.
  ledger.report(flights[0]!, [rate(LIMIT - 1)], later);
  expect(ledger.shortage(WANTED, later + WINDOW_MS)).toBeUndefined();
});

test('one that failed before it was answered is waited for no longer', () => {
  const ledger = seen();
  const late = 10 * WINDOW_MS;
  const flights = Array.from({ length: LIMIT }, () => ledger.depart(WANTED, late));
  ledger.land(flights[0]!, undefined, late + 1);
  expect(ledger.shortage(WANTED, late + WINDOW_MS)).toBeUndefined();
});
