// Tally: the spending of an agent so far, and the effect of one more request. Plain data, because a request may be
// charged in another thread than the agent's.

import type { Event } from '@drover/protocol/events';
import type { Usage } from '@drover/protocol/messages';
import { calibrateTokenRatio, roundTokenRatio } from '../../conversation/conversation.ts';
import type { Price } from '../catalog.ts';
import { pricedUsage, sumSpent, type Spent } from './spent.ts';

export type Tally = {
  readonly total: Spent; // of all requests so far
  readonly window: number; // facts of the model
  readonly estimate?: number; // tokens of the prompt; absent for requests outside the conversation
  readonly ratio?: number; // reported ÷ estimated tokens
};

type Charge = { readonly tally: Tally; readonly cost: number | undefined; readonly event: Event };

/** Adds a request. Returns the new tally, the request's cost in US dollars, and its event. */
export function chargeToTally(tally: Tally, usage: Usage, price: Price | undefined): Charge {
  const request = pricedUsage(usage, price);
  const spent = sumSpent(tally.total, request);
  const ratio = tally.estimate === undefined ? tally.ratio : tallyRatioAfter(tally.estimate, usage, tally.ratio);
  const event: Event = {
    type: 'usage',
    usage,
    total: spent.usage,
    ...(spent.cost !== undefined && { cost: spent.cost }),
    ...(request.cost !== undefined && { requestCost: request.cost }),
    ...(tally.estimate !== undefined && { estimate: tally.estimate, window: tally.window }),
    ...(ratio !== undefined && { estimateRatio: roundTokenRatio(ratio) }),
  };
  return { tally: { ...tally, total: spent, ...(ratio !== undefined && { ratio }) }, cost: request.cost, event };
}

function tallyRatioAfter(estimate: number, usage: Usage, ratio: number | undefined): number | undefined {
  const reported = usage.estimated === true ? 0 : usage.input + usage.cacheRead + usage.cacheWrite;
  return calibrateTokenRatio(ratio, estimate, reported);
}
