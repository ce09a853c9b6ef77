// Dollars of a session by its journal: each request at its model's price, also in journals of older versions.

import type { Event } from '@drover/protocol/events';
import { foldSessionHistory } from '@drover/core/journal/history';
import type { JsonObject } from '@drover/protocol/json';
import type { Usage } from '@drover/protocol/messages';
import { expect, test } from 'vitest';

const MILLION = 1_000_000;
const used = (input: number): Usage => ({ input, output: 0, cacheRead: 0, cacheWrite: 0 });
const begun = (model: string): Event => ({ type: 'session_start', model, cwd: '/somewhere' });
const DEAR = begun('anthropic/claude-opus-4-1'); // $15 per million tokens of input
const CHEAP = begun('anthropic/claude-haiku-4-5'); // $1
const UNKNOWN = begun('local/unheard-of');

/** One request of a million tokens, the nth of its session. */
const request = (n: number, dollars: { readonly cost?: number; readonly requestCost?: number }): Event => ({
  type: 'usage',
  usage: used(MILLION),
  total: used(n * MILLION),
  ...dollars,
});

function costOf(...events: readonly Event[]): number | undefined {
  const records = events.map((event, at) => ({ ...event, v: 1, seq: at + 1, at: '2027-01-15T09:30:00.000Z' }));
  return foldSessionHistory(records as unknown as readonly JsonObject[])?.cost;
}

test('recorded dollars are used as they are, whatever the catalog says', () => {
  const events = [DEAR, request(1, { cost: 7, requestCost: 7 }), CHEAP, request(2, { cost: 9, requestCost: 2 })];
  expect(costOf(...events)).toBe(9);
});

test('a request without a price adds no dollars and removes none', () => {
  const events = [DEAR, request(1, { cost: 15, requestCost: 15 }), UNKNOWN, request(2, { cost: 15 })];
  expect([costOf(...events), costOf(UNKNOWN, request(1, {}))]).toEqual([15, undefined]);
});

test('an older total priced by the last model is split by model again', () => {
  const events = [DEAR, request(1, { cost: 15 }), request(2, { cost: 30 }), CHEAP, request(3, { cost: 3 })];
  expect(costOf(...events)).toBe(31);
  expect(costOf(...events, request(4, { cost: 4 }))).toBe(32);
});

test('older dollars of one model stay as they are: the user may have set the price', () => {
  expect(costOf(DEAR, request(1, { cost: 2 }), request(2, { cost: 4 }))).toBe(4);
});

test('after a change to an uncatalogued model a request has its share of the total', () => {
  expect(costOf(DEAR, request(1, { cost: 15 }), UNKNOWN, request(2, { cost: 6 }))).toBe(18);
});

test('older records without dollars are priced by the catalog', () => {
  expect(costOf(DEAR, request(1, {}), CHEAP, request(2, {}))).toBe(16);
});
