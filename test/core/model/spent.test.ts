// Sums of spending: tokens always add up, dollars only where a price was known.

import { sumSpent } from '@drover/core/model/spending/spent';
import { expect, test } from 'vitest';

const tokens = (input: number) => ({ input, output: 0, cacheRead: 0, cacheWrite: 0 });

test('a request without a price adds its tokens and no dollars, on either side', () => {
  const [priced, unpriced] = [{ usage: tokens(1), cost: 0.5 }, { usage: tokens(2) }];
  expect([sumSpent(priced, unpriced), sumSpent(unpriced, priced), sumSpent(unpriced, unpriced)]).toEqual([
    { usage: tokens(3), cost: 0.5 },
    { usage: tokens(3), cost: 0.5 },
    { usage: tokens(4) },
  ]);
});
