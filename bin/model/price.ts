// The price of a model: from the config, else from the catalog. Unknown is not free, so a budget in dollars needs a
// price.

import { UsageError } from '@drover/core/errors';
import { modelFactsOf, type Price } from '@drover/core/model/catalog';
import type { Budget } from '../start/quantities.ts';
import type { Settings } from '../start/settings.ts';
import type { ModelName } from './model-choice.ts';

export function findModelPrice(
  { label, name }: ModelName,
  budget: Budget | undefined,
  { prices }: Settings,
): Price | undefined {
  const price = prices.get(label) ?? modelFactsOf(name).price;
  if (price === undefined && budget !== undefined && 'usd' in budget) {
    throw new UsageError(
      `--budget: the price of ${label} is not known; set "prices" in your config, or give the budget in tokens, such as 200ktok`,
    );
  }
  return price;
}

/** The maximum cost of this many tokens, all of them of the most expensive kind. */
export function mostDollarsForTokens(tokens: number, { input, output, cacheRead, cacheWrite }: Price): number {
  return (tokens * Math.max(input, output, cacheRead, cacheWrite)) / 1_000_000;
}
