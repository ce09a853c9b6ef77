// Rate-limit headers of two API families, and invalid ones.

import { readRateHeaders } from '@drover/coordinator/admission/rate-headers';
import { expect, test } from 'vitest';

const NOW = Date.parse('2030-01-01T00:00:00Z');

test('Anthropic’s limits are read, with resets as time from now', () => {
  const headers = {
    'anthropic-ratelimit-requests-limit': '50',
    'anthropic-ratelimit-requests-remaining': '49',
    'anthropic-ratelimit-requests-reset': '2030-01-01T00:00:01Z',
    'anthropic-ratelimit-tokens-limit': '40000',
    'anthropic-ratelimit-tokens-remaining': '39000',
    'anthropic-ratelimit-tokens-reset': '2030-01-01T00:00:02.500Z',
    'anthropic-ratelimit-input-tokens-limit': '30000',
    'anthropic-ratelimit-input-tokens-remaining': '0',
    'anthropic-ratelimit-input-tokens-reset': '2030-01-01T00:01:00+00:00',
    'anthropic-ratelimit-output-tokens-limit': '8000',
    'anthropic-ratelimit-output-tokens-remaining': '7000',
    'anthropic-ratelimit-output-tokens-reset': '2030-01-01T00:00:10Z',
  };
  expect(readRateHeaders(headers, NOW)).toEqual({
    rates: [
      { name: 'requests', limit: 50, remaining: 49, resetMs: 1_000, countsCacheReads: false },
      { name: 'tokens', limit: 40_000, remaining: 39_000, resetMs: 2_500, countsCacheReads: false },
      { name: 'input-tokens', limit: 30_000, remaining: 0, resetMs: 60_000, countsCacheReads: false },
      { name: 'output-tokens', limit: 8_000, remaining: 7_000, resetMs: 10_000, countsCacheReads: false },
    ],
  });
});

test('OpenAI’s limits are read, with resets as durations', () => {
  const headers = {
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1s',
    'x-ratelimit-limit-tokens': '150000',
    'x-ratelimit-remaining-tokens': '149984',
    'x-ratelimit-reset-tokens': '6m0s',
  };
  expect(readRateHeaders(headers, NOW)).toEqual({
    rates: [
      { name: 'requests', limit: 60, remaining: 59, resetMs: 1_000, countsCacheReads: true },
      { name: 'tokens', limit: 150_000, remaining: 149_984, resetMs: 360_000, countsCacheReads: true },
    ],
  });
});

test.each([
  ['20ms', 20],
  ['1.5s', 1_500],
  ['1h2m3s', 3_723_000],
  ['12', 12_000],
  ['0s', 0],
  ['0', 0],
  ['0m0s', 0],
  ['soon', undefined],
  ['', undefined],
  ['-5s', undefined],
  ['9000h', undefined], // longer than any window
])('a reset of %j is %j milliseconds', (reset, resetMs) => {
  const [rate] = readRateHeaders({ 'x-ratelimit-remaining-tokens': '5', 'x-ratelimit-reset-tokens': reset }, NOW).rates;
  expect(rate?.resetMs).toBe(resetMs);
});

test.each([
  ['a reset in the past is now', '2029-12-31T23:59:00Z', undefined, 0],
  ['a server whose clock is an hour ahead is asked in its own time', '2030-01-01T01:00:30Z', 3_600_000, 30_000],
  ['a server whose clock is an hour behind, too', '2029-12-31T23:00:30Z', -3_600_000, 30_000],
  ['clocks that agree to the second are taken as agreeing', '2030-01-01T00:00:30Z', -1_000, 30_000],
  ['a date that is none is not asked', '2030-01-01T00:00:30Z', Number.NaN, 30_000],
  ['a reset that is no time is not said', 'tomorrow', undefined, undefined],
])('%s', (_, reset, aheadMs, resetMs) => {
  const date =
    aheadMs === undefined ? {} : { date: Number.isNaN(aheadMs) ? 'x' : new Date(NOW + aheadMs).toUTCString() };
  const headers = {
    ...date,
    'anthropic-ratelimit-requests-remaining': '5',
    'anthropic-ratelimit-requests-reset': reset,
  };
  expect(readRateHeaders(headers, NOW).rates[0]?.resetMs).toBe(resetMs);
});

test('invalid headers are ignored', () => {
  const headers = {
    'x-ratelimit-remaining-requests': '-1',
    'x-ratelimit-limit-requests': '10',
    'anthropic-ratelimit-requests-limit': '50',
    'anthropic-ratelimit-tokens-remaining': 'many',
    'x-ratelimit-limit-tokens': '0',
    'x-ratelimit-remaining-tokens': '0',
    'retry-after': 'never',
  };
  expect(readRateHeaders(headers, NOW)).toEqual({ rates: [] });
  expect(readRateHeaders({}, NOW)).toEqual({ rates: [] });
});

test('a limit lower than its rest is ignored', () => {
  const headers = { 'x-ratelimit-remaining-requests': '12', 'x-ratelimit-limit-requests': '10' };
  expect(readRateHeaders(headers, NOW).rates).toEqual([
    { name: 'requests', limit: 12, remaining: 12, countsCacheReads: true },
  ]);
});

test('only an explicit retry time counts as a time to wait', () => {
  const reset = { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '7s' };
  expect(readRateHeaders(reset, NOW).retryAfterMs).toBeUndefined();
  expect(readRateHeaders({ ...reset, 'retry-after': '2' }, NOW).retryAfterMs).toBe(2_000);
  expect(readRateHeaders({ 'retry-after-ms': '150', 'retry-after': '1' }, NOW).retryAfterMs).toBe(150);
});
