// Spending: tokens and their cost in dollars. Each request is priced once, when it is made.

import { modelCostOf, type Price } from '../catalog.ts';
import type { Usage } from '@drover/protocol/messages';
import { NO_USAGE, sumUsage } from './usage.ts';

/** `cost`: US dollars; absent if no price was known. */
export type Spent = { readonly usage: Usage; readonly cost?: number };

export const NO_SPENDING: Spent = { usage: NO_USAGE };

/** Picks usage and cost from a larger record. */
export function spentIn({ usage, cost }: { readonly usage: Usage; readonly cost?: number | undefined }): Spent {
  return { usage, ...(cost !== undefined && { cost }) };
}

export function pricedUsage(usage: Usage, price: Price | undefined): Spent {
  return spentIn({ usage, cost: price && modelCostOf(usage, price) });
}

/** Requests without a known price add tokens and no dollars. */
export function sumSpent(a: Spent, b: Spent): Spent {
  const cost = a.cost === undefined && b.cost === undefined ? undefined : (a.cost ?? 0) + (b.cost ?? 0);
  return spentIn({ usage: sumUsage(a.usage, b.usage), cost });
}
