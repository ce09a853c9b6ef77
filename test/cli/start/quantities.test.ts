// Durations, budgets and counts as users type them.

import { expect, test } from 'vitest';
import { parseBudget, parseCount, parseDuration } from '../../../bin/start/quantities.ts';

test.each([
  ['500ms', 500],
  ['90s', 90_000],
  ['30m', 1_800_000],
  ['1h30m', 5_400_000],
  ['1.5h', 5_400_000],
  ['2m3s4ms', 123_004],
])('%s is %i ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each([
  ['', "'' is not a duration; write it like 500ms, 90s, 30m or 1h30m"],
  ['30', "'30' is not a duration; write it like 500ms, 90s, 30m or 1h30m"],
  ['30 m', "'30 m' is not a duration; write it like 500ms, 90s, 30m or 1h30m"],
  ['-5m', "'-5m' is not a duration; write it like 500ms, 90s, 30m or 1h30m"],
  ['30m1h', "'30m1h' is not a duration; write it like 500ms, 90s, 30m or 1h30m"],
  ['0s', "'0s' is no time at all; write it like 500ms, 90s, 30m or 1h30m"],
  ['600h', "'600h' is too long; the longest is 24 days"],
])('%j is not a duration', (text, sentence) => {
  expect(() => parseDuration(text)).toThrow(sentence);
});

test.each([
  ['5usd', { usd: 5 }],
  ['0.50usd', { usd: 0.5 }],
  ['200ktok', { tokens: 200_000 }],
  ['1.5mtok', { tokens: 1_500_000 }],
  ['900tok', { tokens: 900 }],
])('%s is %j', (text, budget) => {
  expect(parseBudget(text)).toEqual(budget);
});

test.each([
  ['5', "'5' is not a budget; write it like 5usd, 0.50usd, 200ktok or 1mtok"],
  ['usd', "'usd' is not a budget; write it like 5usd, 0.50usd, 200ktok or 1mtok"],
  ['1e3usd', "'1e3usd' is not a budget; write it like 5usd, 0.50usd, 200ktok or 1mtok"],
  ['0usd', "'0usd' buys nothing; write it like 5usd, 0.50usd, 200ktok or 1mtok"],
  [`${'9'.repeat(30)}tok`, `'${'9'.repeat(30)}tok' is too large; write it like 5usd, 0.50usd, 200ktok or 1mtok`],
])('%j is not a budget', (text, sentence) => {
  expect(() => parseBudget(text)).toThrow(sentence);
});

test.each(['', '1.5', '0x10', '-1', '11', ' 3'])('%j is not a count from 1 to 10', (text) => {
  expect(() => parseCount(text, 1, 10)).toThrow(`'${text}' is not a whole number from 1 to 10`);
});

test('a count may be either of its bounds', () => {
  expect([parseCount('1', 1, 10), parseCount('10', 1, 10)]).toEqual([1, 10]);
});
