// Dollars in a journal: sums the cost of requests, each at the price of the model that received it.
//
// Current records hold the cost of each request (`requestCost`), and their total is the sum. Older records hold only
// a total, priced by the model of the last request. If two such totals have the same model, the request cost is
// their difference. After a model change, the catalog prices the request. If the catalog does not know the model,
// the request gets its share of the total by tokens.

import { modelCostOf, modelFactsOf } from '../model/catalog.ts';
import type { Usage } from '@drover/protocol/messages';
import { NO_USAGE, sumUsage, spentTokensOf } from '../model/spending/usage.ts';

/** The cost fields of a record: the total so far, and the latest request. */
export type Told = { readonly total: Usage; readonly cost?: number; readonly requestCost?: number };

export class Dollars {
  #model = ''; // provider/name
  #total: Usage = NO_USAGE;
  #told: { readonly cost: number; readonly model: string } | undefined; // the last recorded total in dollars
  #cost: number | undefined;

  /** Dollars of all requests so far; undefined while no price is known. */
  get cost(): number | undefined {
    return this.#cost;
  }

  /** Sets the model that the following requests are sent to. */
  use(model: string): void {
    this.#model = model;
  }

  /** Returns the dollars of a request that no record holds, such as a lost one; undefined if its price is unknown. */
  costOf(usage: Usage, cost: number | undefined): number | undefined {
    return cost ?? this.#byCatalog(usage);
  }

  /** Adds such a request. */
  add(usage: Usage, cost: number | undefined): void {
    const added = this.costOf(usage, cost);
    this.#total = sumUsage(this.#total, usage);
    if (this.#told !== undefined) this.#told = { ...this.#told, cost: this.#told.cost + (added ?? 0) };
    this.#count(added);
  }

  /** Adds a record and returns the dollars of its request; undefined if the price is unknown. */
  take({ total, cost, requestCost }: Told): number | undefined {
    const isAnew = spentTokensOf(total) < spentTokensOf(this.#total);
    const usage = isAnew ? total : journalUsageDifference(total, this.#total);
    const added = requestCost ?? this.#ofOlder({ total, usage, cost });
    this.#total = total;
    if (cost !== undefined) this.#told = { cost, model: this.#model };
    if (requestCost !== undefined && cost !== undefined) this.#cost = cost;
    else this.#count(added);
    return added;
  }

  #ofOlder({ total, usage, cost }: { total: Usage; usage: Usage; cost: number | undefined }): number | undefined {
    if (spentTokensOf(usage) === 0) return undefined;
    if (cost === undefined) return this.#byCatalog(usage);
    if (this.#told === undefined && spentTokensOf(usage) === spentTokensOf(total)) return cost;
    // A request without a known price leaves the total unchanged.
    if (this.#told?.cost === cost) return undefined;
    if (this.#told?.model === this.#model && cost > this.#told.cost) return cost - this.#told.cost;
    return this.#byCatalog(usage) ?? (cost * spentTokensOf(usage)) / spentTokensOf(total);
  }

  #byCatalog(usage: Usage): number | undefined {
    const { price } = modelFactsOf(this.#model.slice(this.#model.indexOf('/') + 1));
    return price && modelCostOf(usage, price);
  }

  #count(added: number | undefined): void {
    if (added !== undefined) this.#cost = (this.#cost ?? 0) + added;
  }
}

function journalUsageDifference(a: Usage, b: Usage): Usage {
  return {
    input: Math.max(0, a.input - b.input),
    output: Math.max(0, a.output - b.output),
    cacheRead: Math.max(0, a.cacheRead - b.cacheRead),
    cacheWrite: Math.max(0, a.cacheWrite - b.cacheWrite),
  };
}
