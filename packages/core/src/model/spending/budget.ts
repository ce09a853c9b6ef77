// Budget: a cap on dollars or tokens that holds for any number of concurrent requests.
//
// A request reserves its worst case before it is sent, and is charged its reported usage afterwards.
// Spent plus reserved never exceeds the cap, so spent does not either.

import type { Cap } from '@drover/protocol/limits';
import { modelCostOf, type Price } from '../catalog.ts';
import type { Usage } from '@drover/protocol/messages';
import { pricedUsage, type Spent } from './spent.ts';
import { spentTokensOf } from './usage.ts';

/** Shorter answers are not worth a request. */
const OUTPUT_TOKENS_MIN = 256;
/** Safety margin for floating-point sums of dollars. */
const ROUNDING = 1e-9;

export type Reservation = {
  readonly outputTokensMax: number;
  /** The most that the request can use. */
  readonly most: Usage;
  readonly mostCost?: number; // US dollars; absent if the price is unknown
  readonly settle: (usage: Usage) => void;
};

/** The amounts behind a budget, in the unit of its cap. Budgets with the same cap may share one. */
export class Pot {
  spent = 0;
  reserved = 0;
  open = 0; // reservations
  /** Retry callbacks of the lanes whose requests wait for budget to be returned. */
  readonly retries = new Set<() => void>();
}

export class Budget {
  readonly #cap: Cap | undefined;
  readonly #price: Price | undefined;
  readonly #pot: Pot;

  constructor(cap: Cap | undefined, price: Price | undefined, pot = new Pot()) {
    this.#cap = cap;
    this.#price = price;
    this.#pot = pot;
  }

  /**
   * Reserves a request at the price of its model, with a shorter answer if needed. Returns undefined if even that
   * does not fit.
   */
  reserve(inputTokens: number, outputTokensWanted: number, price = this.#price): Reservation | undefined {
    const input = this.#worth(worstCaseSpending(inputTokens, 0, price), price);
    const perOutput = this.#worth(worstCaseSpending(0, 1, price), price);
    const room = this.#room() - input;
    const outputTokensMax =
      perOutput === 0 ? outputTokensWanted : Math.min(outputTokensWanted, Math.floor(room / perOutput));
    if (outputTokensMax < Math.min(OUTPUT_TOKENS_MIN, outputTokensWanted)) return undefined;
    const held = input + outputTokensMax * perOutput;
    const pot = this.#pot;
    pot.reserved += held;
    pot.open += 1;
    let isOpen = true;
    const settle = (usage: Usage) => {
      if (!isOpen) return;
      isOpen = false;
      pot.open -= 1;
      pot.reserved = pot.open === 0 ? 0 : pot.reserved - held;
      this.spend(pricedUsage(usage, price));
    };
    const { usage: most, cost } = pricedUsage(
      { ...worstCaseSpending(inputTokens, outputTokensMax, price), estimated: true },
      price,
    );
    return {
      outputTokensMax,
      most,
      ...(cost !== undefined && { mostCost: cost }),
      settle,
    };
  }

  /** Adds spending that was never reserved, such as that before a restart. Its dollars are not priced again. */
  spend({ usage, cost = 0 }: Spent): void {
    this.#pot.spent += this.#isInDollars() ? cost : spentTokensOf(usage);
  }

  get cap(): Cap | undefined {
    return this.#cap;
  }

  /** Amount spent in the unit of the cap: dollars, or else tokens. */
  get spent(): number {
    return this.#pot.spent;
  }

  get reserved(): number {
    return this.#pot.reserved;
  }

  /** Number of reservations that are not charged yet. */
  get open(): number {
    return this.#pot.open;
  }

  #room(): number {
    if (this.#cap === undefined) return Number.POSITIVE_INFINITY;
    const cap = 'usd' in this.#cap ? this.#cap.usd * (1 - ROUNDING) : this.#cap.tokens;
    return cap - this.#pot.spent - this.#pot.reserved;
  }

  #worth(usage: Usage, price: Price | undefined): number {
    if (!this.#isInDollars()) return spentTokensOf(usage);
    return price === undefined ? 0 : modelCostOf(usage, price);
  }

  #isInDollars(): boolean {
    return this.#cap !== undefined && 'usd' in this.#cap;
  }
}

/** The most expensive way to bill these tokens: usually as cache writes. */
export function worstCaseSpending(inputTokens: number, outputTokens: number, price: Price | undefined): Usage {
  const isPlainDearer = price !== undefined && price.input > price.cacheWrite;
  const [input, cacheWrite] = isPlainDearer ? [inputTokens, 0] : [0, inputTokens];
  return { input, output: outputTokens, cacheRead: 0, cacheWrite };
}
