// The share of a limit that requests in flight take while their arrival is unknown.

import { type Flight, Ledger } from '@drover/coordinator/admission/ledger';
import type { Rate } from '@drover/coordinator/admission/rate-headers';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const WANTED = { inputTokens: 10, outputTokensMax: 10 };
const LIMIT = 12;
const WINDOW_MS = 250;

function rate(remaining: number): Rate {
  const resetMs = ((LIMIT - remaining) / LIMIT) * WINDOW_MS;
  return { name: 'requests', limit: LIMIT, remaining, resetMs, countsCacheReads: true };
}

/** A ledger that has seen one answer, with a bucket that is nearly full. */
function seen(): Ledger {
  const ledger = new Ledger();
  const first = ledger.depart(WANTED, 0);
  ledger.report(first, [rate(LIMIT - 2)], 1);
  ledger.land(first, undefined, 2);
  return ledger;
}

test('a full bucket gains nothing during requests: no more are sent than it holds', () => {
  const ledger = seen();
  const late = 10 * WINDOW_MS;
  const flights = Array.from({ length: LIMIT }, () => ledger.depart(WANTED, late));
  // Their age does not matter: all of them may arrive at the same moment.
  const later = late + 10 * WINDOW_MS;
  expect(ledger.shortage(WANTED, later)).toEqual({ name: 'requests', waitMs: undefined });

  // The answered request has arrived, and the others may arrive now: there is room once the bucket has refilled a
  // little.
  ledger.report(flights[0]!, [rate(LIMIT - 1)], later);
  const shortage = ledger.shortage(WANTED, later);
  expect(shortage?.waitMs).toBeGreaterThan(WINDOW_MS / LIMIT);
  expect(ledger.shortage(WANTED, later + shortage!.waitMs! + 1)).toBeUndefined();
});

test('a report may not include requests that were sent long before it', () => {
  const ledger = seen();
  const late = 10 * WINDOW_MS;
  ledger.depart(WANTED, late);
  const later = late + 5_000;
  ledger.report(ledger.depart(WANTED, later), [rate(LIMIT - 1)], later);
  let more = 0;
  for (; ledger.shortage(WANTED, later) === undefined; more++) ledger.depart(WANTED, later);
  expect(more).toBe(LIMIT - 2);
});

test('a request that failed before its answer is no longer waited for', () => {
  const ledger = seen();
  const late = 10 * WINDOW_MS;
  const flights = Array.from({ length: LIMIT }, () => ledger.depart(WANTED, late));
  ledger.land(flights[0]!, undefined, late + 1);
  expect(ledger.shortage(WANTED, late + WINDOW_MS)).toBeUndefined();
});

/** A bucket that refills steadily, and a clock shared by it and its callers. */
class Bucket {
  refused = 0;
  #level = LIMIT;
  #at = 0;

  admit(now: number): Rate {
    this.#level = Math.min(LIMIT, this.#level + ((now - this.#at) * LIMIT) / WINDOW_MS);
    this.#at = now;
    if (this.#level < 1) this.refused += 1;
    else this.#level -= 1;
    return { ...rate(Math.floor(this.#level)), resetMs: ((LIMIT - this.#level) / LIMIT) * WINDOW_MS };
  }
}

type Side = 'here' | 'there';
type Coming = { readonly at: number; readonly side: Side; readonly happen: (now: number) => void };

/** The delays of requests and answers, and the pauses after which everything delayed arrives at once. */
const LATE_MS = fc.oneof(fc.nat(40), fc.nat(3_000));
const WAYS = fc.record({
  delays: fc.array(fc.record({ thereMs: LATE_MS, backMs: LATE_MS }), { minLength: 60, maxLength: 60 }),
  stalls: fc.array(fc.record({ side: fc.constantFrom<Side>('here', 'there'), from: fc.nat(3_000), ms: fc.nat(900) })),
});

test('no request is refused, whatever stalls and however late reports arrive', () => {
  const property = fc.property(WAYS, ({ delays, stalls }) => {
    const ledger = new Ledger();
    const bucket = new Bucket();
    let coming: Coming[] = [];
    let sent = 0;
    let answered = 0;
    const send = (now: number): void => {
      const flight: Flight = ledger.depart(WANTED, now);
      const { thereMs, backMs } = delays[sent++]!;
      const arrive = (there: number): void => {
        const told = bucket.admit(there);
        const hear = (back: number): void => {
          answered += 1;
          ledger.report(flight, [told], back);
          ledger.land(flight, undefined, back);
        };
        coming.push({ at: there + backMs, side: 'here', happen: hear });
      };
      coming.push({ at: now + thereMs, side: 'there', happen: arrive });
    };
    // No limit is known before the first answer, so one request goes alone; see pace.ts.
    const mayGo = (now: number) =>
      sent < delays.length && (sent === 0 || answered > 0) && ledger.shortage(WANTED, now) === undefined;
    for (let now = 0; answered < delays.length; now++) {
      const isStill = (side: Side) => stalls.some((stall) => stall.side === side && isWithin(stall, now));
      const due = coming.filter(({ at, side }) => at <= now && !isStill(side));
      coming = coming.filter((each) => !due.includes(each));
      for (const { happen } of due.toSorted((a, b) => a.at - b.at)) {
        happen(now);
        // As in the throttle, every answer may admit a waiting request.
        while (!isStill('here') && mayGo(now)) send(now);
      }
      while (!isStill('here') && mayGo(now)) send(now);
    }
    expect(bucket.refused).toBe(0);
  });
  fc.assert(property, { numRuns: 200 });
});

function isWithin({ from, ms }: { readonly from: number; readonly ms: number }, now: number): boolean {
  return now >= from && now < from + ms;
}

test('a report of output tokens leaves out the answers that are still being made', () => {
  const output = (remaining: number): Rate => ({
    name: 'output-tokens',
    limit: 100,
    remaining,
    resetMs: (100 - remaining) * 600,
    countsCacheReads: true,
  });
  const ledger = new Ledger();
  const [first] = [1, 2, 3].map(() => ledger.depart({ inputTokens: 1, outputTokensMax: 30 }, 0));
  ledger.report(first!, [output(100)], 0);
  // Three answers of 30 tokens each are in flight, so there is room for 10.
  expect(ledger.shortage({ inputTokens: 1, outputTokensMax: 10 }, 0)).toBeUndefined();
  expect(ledger.shortage({ inputTokens: 1, outputTokensMax: 11 }, 0)).toMatchObject({ name: 'output-tokens' });
});
