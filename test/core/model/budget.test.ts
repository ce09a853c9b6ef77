// The budget: reserved before a request, charged after it, never exceeded.

import { Budget } from '@drover/core/model/spending/budget';
import { expect, test } from 'vitest';

const PRICE = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1 };
const used = (input: number, output: number) => ({ input, output, cacheRead: 0, cacheWrite: 0 });

test('fifty concurrent requests never reserve more than the cap', () => {
  const budget = new Budget({ tokens: 100_000 }, undefined);
  const open = Array.from({ length: 50 }, () => budget.reserve(1_000, 8_000)).filter((each) => each !== undefined);
  const reserved = open.reduce((sum, { outputTokensMax }) => sum + 1_000 + outputTokensMax, 0);
  expect(reserved).toBeLessThanOrEqual(100_000);
  expect(open.length).toBe(11);
  for (const { outputTokensMax, settle } of open) settle(used(1_000, outputTokensMax));
  expect(budget.spent).toBeLessThanOrEqual(100_000);
  expect(budget.reserve(1_000, 8_000)).toBeUndefined();
});

test('an unused reservation is free again', () => {
  const budget = new Budget({ usd: 1 }, PRICE);
  const first = budget.reserve(100_000, 90_000);
  expect(budget.reserve(0, 1_000)).toBeUndefined();
  first?.settle(used(100_000, 1_000));
  expect(budget.spent).toBeCloseTo(0.11);
  expect(budget.reserve(0, 80_000)?.outputTokensMax).toBe(80_000);
});

test('an answer that does not fit is shortened, but not below a useful length', () => {
  expect(new Budget({ tokens: 3_000 }, undefined).reserve(1_000, 8_000)?.outputTokensMax).toBe(2_000);
  expect(new Budget({ tokens: 1_100 }, undefined).reserve(1_000, 8_000)).toBeUndefined();
});

test('charging twice counts once, and without a cap everything fits', () => {
  const budget = new Budget(undefined, undefined);
  const reserved = budget.reserve(1e9, 8_000);
  reserved?.settle(used(10, 10));
  reserved?.settle(used(10, 10));
  expect([reserved?.outputTokensMax, budget.spent]).toEqual([8_000, 20]);
});

test('the most expensive way to count a prompt is reserved', () => {
  for (const price of [PRICE, { ...PRICE, cacheWrite: 0 }, { ...PRICE, input: 0.1 }]) {
    const budget = new Budget({ usd: 1 }, price);
    budget.reserve(100_000, 1_000);
    expect(budget.reserved).toBeCloseTo(0.11);
  }
});

test('a dollar cap that is used to the last cent is not exceeded by rounding', () => {
  const price = { input: 0.1, output: 0.7, cacheRead: 0.01, cacheWrite: 0.1 };
  const budget = new Budget({ usd: 0.3 }, price);
  for (let next = budget.reserve(1_000, 1_000); next !== undefined; next = budget.reserve(1_000, 1_000))
    next.settle(used(1_000, next.outputTokensMax));
  expect([budget.spent <= 0.3, budget.spent > 0.299, budget.reserved]).toEqual([true, true, 0]);
});

test('earlier spending counts', () => {
  const budget = new Budget({ tokens: 3_000 }, undefined);
  budget.spend({ usage: used(1_500, 500) });
  expect([budget.spent, budget.reserve(500, 8_000)?.outputTokensMax]).toEqual([2_000, 500]);
});
