// Dollars in a journal: a series of totals, with each request at the price of the model that it was sent to.
//
// Records say what each request cost (`requestCost`), and their total is a sum of those. Older records hold only a
// total that was priced by the model of the last request. Between two such totals of one model the difference is
// what the request cost. After a change of the model the catalog prices the request; where the catalog does not know
// the model, the request gets its share of the total by tokens.

import { costOf, factsOf } from '../model/catalog.ts';
import type { Usage } from '@drover/protocol/messages';
import { NO_USAGE, sumUsage, tokensOf } from '../model/spending/usage.ts';

/** What a record says of one request and of everything so far. */
export type Told = { readonly total: Usage; readonly cost?: number; readonly requestCost?: number };

export class Dollars {
  #model = ''; // provider/name
  #total: Usage = NO_USAGE;
  #told: { readonly cost: number; readonly model: string } | undefined; // the last total in dollars, as a record had it
  #cost: number | undefined;

  /** Of all requests so far; undefined while no price is known. */
  get cost(): number | undefined {
    return this.#cost;
  }

  /** The requests that follow are sent to this model. */
  use(model: string): void {
    this.#model = model;
  }

  /** Adds what no record tells, such as a request that was lost. */
  add(usage: Usage, cost: number | undefined): number | undefined {
    const added = cost ?? this.#byCatalog(usage);
    this.#total = sumUsage(this.#total, usage);
    if (this.#told !== undefined) this.#told = { ...this.#told, cost: this.#told.cost + (added ?? 0) };
    this.#count(added);
    return added;
  }

  /** Returns the dollars of the request; undefined where no price is known. */
  take({ total, cost, requestCost }: Told): number | undefined {
    const isAnew = tokensOf(total) < tokensOf(this.#total);
    const usage = isAnew ? total : difference(total, this.#total);
    const added = requestCost ?? this.#ofOlder({ total, usage, cost });
    this.#total = total;
    if (cost !== undefined) this.#told = { cost, model: this.#model };
    if (requestCost !== undefined && cost !== undefined) this.#cost = cost;
    else this.#count(added);
    return added;
  }

  #ofOlder({ total, usage, cost }: { total: Usage; usage: Usage; cost: number | undefined }): number | undefined {
    if (tokensOf(usage) === 0) return undefined;
    if (cost === undefined) return this.#byCatalog(usage);
    if (this.#told === undefined && tokensOf(usage) === tokensOf(total)) return cost;
    // A request without a price left the total as it was.
    if (this.#told?.cost === cost) return undefined;
    if (this.#told?.model === this.#model && cost > this.#told.cost) return cost - this.#told.cost;
    return this.#byCatalog(usage) ?? (cost * tokensOf(usage)) / tokensOf(total);
  }

  #byCatalog(usage: Usage): number | undefined {
    const { price } = factsOf(this.#model.slice(this.#model.indexOf('/') + 1));
    return price && costOf(usage, price);
  }

  #count(added: number | undefined): void {
    if (added !== undefined) this.#cost = (this.#cost ?? 0) + added;
  }
}

function difference(a: Usage, b: Usage): Usage {
  return {
    input: Math.max(0, a.input - b.input),
    output: Math.max(0, a.output - b.output),
    cacheRead: Math.max(0, a.cacheRead - b.cacheRead),
    cacheWrite: Math.max(0, a.cacheWrite - b.cacheWrite),
  };
}
