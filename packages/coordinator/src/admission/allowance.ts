// The estimate of what is left of one rate limit: the last report, minus the requests sent since.
//
// A report is as old as the start of its answer, and may or may not include requests sent at about that time. It
// therefore gives two bounds: at most `remaining` is left, and at least `remaining` minus everything it may lack.
// Between these bounds, drover's own count holds.
//
// Requests under way may not have reached the provider yet, so the count is never refilled beyond the limit minus what
// is under way.
//
// Both large providers refill steadily, so the reset time and the missing amount give the rate. Others start a new
// window at the reset and refill nothing before. Providers do not say which one they do: drover assumes a steady
// refill until a request that relied on it is refused.

import type { Rate } from './rate-headers.ts';

// A request that is too early costs more than one that is a little late.
const REFILL_TRUST = 0.95;
// Some providers report tokens in whole thousands.
const COARSE = { from: 10_000, grain: 1_000 };
// A rate measured with more tokens missing is more precise, but no rate stays valid forever.
const FORGETTING = 0.9;

/** The answer whose headers held the report. */
export type Sighting = {
  /** Requests that the report may not include. */
  readonly unseen: number;
  /** The maximum age of the report. */
  readonly ageMs: number;
};

export class Allowance {
  #limit = Number.POSITIVE_INFINITY;
  #level = Number.NEGATIVE_INFINITY; // refilled steadily; as of #at
  #unaided = Number.NEGATIVE_INFINITY; // the same without any refill
  #taken = 0; // taken since the report, or missing in it
  #onTheWay = 0; // as of #at
  #at: number;
  #perMs = 0; // 0 while unknown
  #rateShare = 0; // the missing amount when the rate was measured
  #fullAt: number | undefined;
  #isSteady = true;

  constructor(rate: Rate, sighting: Sighting, now: number) {
    this.#at = now;
    this.report(rate, sighting, now);
  }

  report(rate: Rate, { unseen, ageMs }: Sighting, now: number): void {
    const grain = rate.remaining % COARSE.grain === 0 && (rate.limit ?? 0) >= COARSE.from ? COARSE.grain : 1;
    const remaining = rate.remaining - Math.floor(grain / 2);
    const known = Math.min(remaining, Math.max(remaining - unseen, this.left));
    if (rate.limit !== undefined && rate.limit !== this.#limit) {
      this.#limit = rate.limit;
      this.#rateShare = 0;
    }
    this.#level = known;
    this.#unaided = known;
    this.#taken = remaining - known;
    this.#at = now;
    this.#fullAt = rate.resetMs === undefined ? undefined : now + rate.resetMs;
    // The missing amount is rounded up by at most one grain, and the time to the reset is short by at most its age.
    if (rate.resetMs !== undefined) this.#learnRate(this.#limit - rate.remaining - grain, rate.resetMs + ageMs);
  }

  #learnRate(missing: number, resetMs: number): void {
    const share = missing / this.#limit;
    if (share > 0 && share >= this.#rateShare) {
      this.#perMs = missing / Math.max(1, resetMs);
      this.#rateShare = share;
    }
    this.#rateShare *= FORGETTING;
  }

  /** Advances the clock; until now, this amount was in flight. Call it before every other method. */
  pass(now: number, onTheWay: number): void {
    const most = this.#limit - onTheWay;
    const gained = this.#perMs * REFILL_TRUST * (now - this.#at);
    if (this.#level < most) this.#level = Math.min(most, this.#level + gained);
    this.#onTheWay = onTheWay;
    this.#at = now;
  }

  /** As of the last `pass`. */
  get left(): number {
    if (this.#isSteady && this.#perMs > 0) return this.#level;
    const isReset = this.#fullAt !== undefined && this.#at >= this.#fullAt;
    // The amount left, without requests that may have arrived before the reset.
    return isReset ? this.#limit - this.#taken : this.#unaided;
  }

  /**
   * Milliseconds until `amount` is available; undefined if only a new response can tell. An amount above the limit
   * waits for the full limit.
   */
  readyInMs(amount: number): number | undefined {
    if (this.#onTheWay > 0 && this.#onTheWay + amount > this.#limit) return undefined;
    const missing = Math.min(amount, this.#limit) - this.left;
    if (missing <= 0) return 0;
    if (this.#isSteady && this.#perMs > 0) return missing / (this.#perMs * REFILL_TRUST);
    return this.#fullAt !== undefined && this.#fullAt > this.#at ? this.#fullAt - this.#at : undefined;
  }

  /** Takes an amount. Returns true if only the refill made room for it. */
  take(amount: number): boolean {
    const isLent = this.#unaided < Math.min(amount, this.#limit);
    this.#level = this.left - amount;
    this.#unaided -= amount;
    this.#taken += amount;
    return isLent && this.#isSteady;
  }

  giveBack(amount: number): void {
    this.#level += amount;
    this.#unaided += amount;
    this.#taken -= amount;
  }

  /** Distrusts the refill, after the provider refused a request that only the refill had made room for. */
  distrustRefill(): void {
    this.#isSteady = false;
  }
}
