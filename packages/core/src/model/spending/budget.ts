// The budget: a cap on dollars or tokens that holds however many requests run at once.
//
// Before a request its worst case is reserved, afterwards it is settled with what was reported. What is
// spent plus what is reserved never passes the cap, so neither does what is spent.

import type { Cap } from '@drover/protocol/limits';
import { costOf, type Price } from '../catalog.ts';
import type { Usage } from '@drover/protocol/messages';
import { priced, type Spent } from './spent.ts';
import { tokensOf } from './usage.ts';

/** An answer shorter than this is not worth asking for. */
const OUTPUT_TOKENS_MIN = 256;
/** Sums of fractions come out a little off, and a cap in dollars must hold all the same. */
const ROUNDING = 1e-9;

export type Reservation = { readonly outputTokensMax: number; readonly settle: (usage: Usage) => void };

/** The amounts behind a budget, in the unit of its cap. Budgets with the same cap may share one. */
export class Pot {
  spent = 0;
  reserved = 0;
  open = 0; // reservations
  /** Requests that wait for money to come back: each is a retry of the lane that holds them. */
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

  /** Room for a request, with a shorter answer where the wanted one doesn't fit, or undefined where it doesn't fit at all. */
  reserve(inputTokens: number, outputTokensWanted: number): Reservation | undefined {
    const input = this.#worth(worstCase(inputTokens, 0, this.#price));
    const perOutput = this.#worth(worstCase(0, 1, this.#price));
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
      this.spend(priced(usage, this.#price));
    };
    return { outputTokensMax, settle };
  }

  /** Counts what was spent without asking, as before a restart. Its dollars are taken as they are. */
  spend({ usage, cost = 0 }: Spent): void {
    this.#pot.spent += this.#isInDollars() ? cost : tokensOf(usage);
  }

  /** In the unit of the cap: dollars, else tokens. */
  get spent(): number {
    return this.#pot.spent;
  }

  get reserved(): number {
    return this.#pot.reserved;
  }

  /** Reservations that are not settled. */
  get open(): number {
    return this.#pot.open;
  }

  #room(): number {
    if (this.#cap === undefined) return Number.POSITIVE_INFINITY;
    const cap = 'usd' in this.#cap ? this.#cap.usd * (1 - ROUNDING) : this.#cap.tokens;
    return cap - this.#pot.spent - this.#pot.reserved;
  }

  #worth(usage: Usage): number {
    if (!this.#isInDollars()) return tokensOf(usage);
    return this.#price === undefined ? 0 : costOf(usage, this.#price);
  }

  #isInDollars(): boolean {
    return this.#cap !== undefined && 'usd' in this.#cap;
  }
}

/** The dearest way in which so many tokens can be counted: most prices have writing to the cache above all else. */
export function worstCase(inputTokens: number, outputTokens: number, price: Price | undefined): Usage {
  const isPlainDearer = price !== undefined && price.input > price.cacheWrite;
  const [input, cacheWrite] = isPlainDearer ? [inputTokens, 0] : [0, inputTokens];
  return { input, output: outputTokens, cacheRead: 0, cacheWrite };
}
