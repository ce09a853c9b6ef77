// The pace of one lane, learned from the provider's responses.
//
// ALONE FIRST
//   Until a first answer has begun, and again after every pause, one request goes alone: it shows that the provider
//   answers, and warms the cache for the rest. If no answer begins within 5 s, the others follow one by one, because a
//   hard question can be slow to answer and idle workers cost more than a few extra requests.
// REFUSED
//   A 429 or 529 pauses all requests until the server's retry-after, or for a time that doubles. It halves the number
//   of concurrent requests, once for all that were sent before it. Then requests start one by one with random gaps,
//   and the number grows again with answers.
//
// Pure: `now` is performance.now(), and no function waits.

import type { Failure } from '@drover/protocol/failures';

const ALONE_MS_MAX = 5_000;
const GAP_MS = 100;
const ANSWERS_TO_RAISE = 8;
const BACKOFF_MS = 1_000;
const BACKOFF_MS_MAX = 60_000;
const OVERLOADED = 529;
const UNAVAILABLE = 503;

export type PaceHold =
  | { readonly why: 'paused' | 'alone' | 'gap'; readonly waitMs: number }
  | { readonly why: 'parallel'; readonly waitMs?: never };

export type PaceOptions = { readonly random: () => number }; // a number in [0, 1)

export class Pace {
  readonly #options: PaceOptions;
  #parallelMax = 0;
  #allowed = Number.POSITIVE_INFINITY; // concurrent requests allowed after a refusal
  #answers = 0; // answers since `#allowed` changed
  #refusals = 0; // consecutive refusals
  #pausedUntil = 0;
  #slowedAt = Number.NEGATIVE_INFINITY; // answers to requests sent before this time prove nothing
  #isProven = false;
  #aloneSince: number | undefined; // when the probe that goes alone was sent
  #gaps = 0; // number of further requests that start with a gap
  #nextAt = 0;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** Adjusts the expected number of concurrent requests; negative when work ends. */
  widen(by: number): void {
    this.#parallelMax += by;
  }

  /** The maximum number of concurrent requests. */
  get parallel(): number {
    return Math.max(1, Math.min(this.#parallelMax, this.#allowed));
  }

  pausedMs(now: number): number {
    return Math.max(0, this.#pausedUntil - now);
  }

  /** Returns why the next request must wait. */
  hold(inFlight: number, now: number): PaceHold | undefined {
    if (this.#pausedUntil > now) return { why: 'paused', waitMs: this.#pausedUntil - now };
    const aloneUntil = (this.#aloneSince ?? Number.NEGATIVE_INFINITY) + ALONE_MS_MAX;
    if (!this.#isProven && aloneUntil > now) return { why: 'alone', waitMs: aloneUntil - now };
    if (inFlight >= this.parallel) return { why: 'parallel' };
    if (this.#nextAt > now) return { why: 'gap', waitMs: this.#nextAt - now };
    return undefined;
  }

  sent(now: number): void {
    if (!this.#isProven) {
      if (this.#aloneSince !== undefined) this.#gaps = Math.max(this.#gaps, 1);
      this.#aloneSince ??= now;
    }
    if (this.#gaps === 0) return;
    this.#gaps -= 1;
    this.#nextAt = now + GAP_MS * (0.5 + this.#options.random());
  }

  /** Records that the answer to a request sent at this time has begun. */
  begun(sentAt: number): void {
    if (sentAt <= this.#slowedAt) return;
    this.#isProven = true;
    this.#refusals = 0;
  }

  answered(sentAt: number): void {
    if (sentAt <= this.#slowedAt) return;
    this.begun(sentAt);
    this.#answers += 1;
    if (this.#answers < ANSWERS_TO_RAISE || this.#allowed >= this.#parallelMax) return;
    this.#answers = 0;
    this.#allowed += 1;
  }

  /** Records that a request failed for a reason unrelated to the rate. */
  failed(sentAt: number): void {
    if (sentAt === this.#aloneSince) this.#aloneSince = undefined;
  }

  refused(retryAfterMs: number | undefined, sentAt: number, now: number): void {
    // Requests sent before the first refusal bring no new information when they are refused too.
    if (sentAt <= this.#slowedAt) {
      this.#pausedUntil = Math.max(this.#pausedUntil, now + (retryAfterMs ?? 0));
      return;
    }
    this.#allowed = Math.max(1, Math.floor(this.parallel / 2));
    this.#answers = 0;
    this.#refusals += 1;
    // If the server refuses again after the delay it asked for, that delay is no longer trusted.
    const isTrusted = retryAfterMs !== undefined && this.#refusals === 1;
    this.pause(isTrusted ? retryAfterMs : Math.max(retryAfterMs ?? 0, this.#backoffMs()), now);
  }

  /** All requests wait, and then start one by one. */
  pause(waitMs: number, now: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, now + waitMs);
    this.#slowedAt = now;
    this.#isProven = false;
    this.#aloneSince = undefined;
    this.#gaps = this.#parallelMax;
  }

  #backoffMs(): number {
    const full = Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** (this.#refusals - 1));
    return full * (0.75 + this.#options.random() * 0.5);
  }
}

/** True if a failure asks the whole lane to slow down. */
export function isRateRefusal(failure: Failure): failure is Failure & { readonly retryAfterMs?: number } {
  if (failure.kind === 'provider.throttled') return true;
  if (failure.kind !== 'provider.unavailable') return false;
  return failure.status === OVERLOADED || (failure.status === UNAVAILABLE && failure.retryAfterMs !== undefined);
}
