// The throttle: every request to a provider passes it, first come, first served.
//
// There is one lane for each provider, key and model, because providers count by these. All workers of all runs that
// share the throttle share its lanes. A lane allows as many concurrent requests as these runs have workers, and keeps
// a pause after the last run has ended. A request leaves its lane when three parts agree: the pace (pace.ts), the
// ledger (ledger.ts) and the caller's `claim` (the budget). Only then everything is taken at once, so no request holds
// budget while it waits for the provider, or a place while it waits for budget.
//
// Guarantees
//   1. No request overtakes another, so none starves.
//   2. After the first answer, the requests under way never exceed what the headers leave.
//   3. A wait ends at once when its signal aborts. It is reported once: as soon as it is known to be long, or when it
//      is over.
//   4. If a provider asks for a longer pause than the maximum, all waiting requests fail with its message.

import { createHash } from 'node:crypto';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { DroverError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import type { Seen, Wanted } from '@drover/core/model/spending/admission';
import type { Usage } from '@drover/protocol/messages';
import { Ledger, type Flight } from './ledger.ts';
import { isRateRefusal, Pace, type PaceOptions } from './pace.ts';
import { readRateHeaders, type Headers, type RateName } from './rate-headers.ts';

/** A wait of at least this length is reported at once. */
const LONG_MS = 1_000;
/** After this time without a request in flight, one is sent despite the headers: its answer brings new limits. */
const SHORTAGE_MS_MAX = 90_000;
const NO_MONEY = 'what is left of the budget is reserved for requests under way';

export type ThrottleOptions = PaceOptions & {
  /** A longer wait fails at once, with its reason. */
  readonly waitMsMax: number;
};

export type Wait = { readonly waitMs: number; readonly reason: string };

export type Entry = Wanted & {
  /** The payer: a request without budget delays only requests of the same payer. */
  readonly payer: object;
  /** Called when the request could be sent: false makes it wait until the lane's next `retry`, an exception ends it. */
  readonly claim: () => boolean;
  readonly onWait: (wait: Wait) => void;
};

/** A grant to send one request. */
export type Ticket = {
  /** Reports that the answer has begun, with its headers. */
  readonly began: (headers: Headers) => void;
  /** Reports the end of the request. Call it once. */
  readonly leave: (left: Seen & { readonly usage: Usage }) => void;
};

export class Throttle {
  readonly #options: ThrottleOptions;
  readonly #lanes = new Map<string, Lane>();

  constructor(options: ThrottleOptions) {
    this.#options = options;
  }

  /** Returns the lane, opened for this many more concurrent requests. Closing is idempotent. */
  open(key: string, parallel: number): OpenLane {
    this.#forget();
    const lane = this.#lanes.get(key) ?? new Lane(this.#options);
    this.#lanes.set(key, lane);
    return { lane, close: lane.share(parallel) };
  }

  #forget(): void {
    for (const [key, lane] of this.#lanes) if (!lane.isNeeded) this.#lanes.delete(key);
  }
}

export type OpenLane = { readonly lane: Lane; readonly close: () => void };

/** The account by which providers count. It does not contain the key itself. */
export function throttleLaneKey(account: {
  readonly provider: string;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
}): string {
  const digest = createHash('sha256').update(account.apiKey).digest('hex').slice(0, 16);
  return [account.provider, account.baseUrl, digest, account.model].join(' ');
}

type Waiting = {
  readonly entry: Entry;
  readonly since: number;
  readonly resolve: (ticket: Ticket) => void;
  readonly reject: (error: unknown) => void;
  reason: string; // empty until a request has to wait
  isTold: boolean;
};

/** Why the first request in the queue cannot be sent, and the wait if it is known. */
type Hold = { readonly waitMs?: number; readonly isCertain?: boolean; readonly reason: string };

export class Lane {
  readonly #waitMsMax: number;
  readonly #pace: Pace;
  readonly #ledger = new Ledger();
  readonly #queue: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #refusal: Failure | undefined;
  #sharers = 0;
  /** The identity is stable, so a budget that several runs share stores it once. */
  readonly retrying = (): void => this.retry();

  constructor({ waitMsMax, ...pace }: ThrottleOptions) {
    this.#waitMsMax = waitMsMax;
    this.#pace = new Pace(pace);
  }

  get inFlight(): number {
    return this.#ledger.inFlight;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** True while a run uses the lane, or a pause that the provider asked for lasts. */
  get isNeeded(): boolean {
    return this.#sharers > 0 || this.#pace.pausedMs(performance.now()) > 0;
  }

  /** Returns the function that ends it. */
  share(parallel: number): () => void {
    this.#sharers += 1;
    this.#pace.widen(parallel);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#sharers -= 1;
      this.#pace.widen(-parallel);
    };
  }

  async enter(entry: Entry, signal: AbortSignal): Promise<Ticket> {
    if (signal.aborted) throw new DroverError(turnFailureOfSignal(signal));
    const { promise, resolve, reject } = Promise.withResolvers<Ticket>();
    const waiting: Waiting = { entry, since: performance.now(), resolve, reject, reason: '', isTold: false };
    const giveUp = () => {
      const at = this.#queue.indexOf(waiting);
      if (at < 0) return;
      this.#queue.splice(at, 1);
      tellWhenThrottleEnds(waiting);
      reject(new DroverError(turnFailureOfSignal(signal)));
      this.retry();
    };
    signal.addEventListener('abort', giveUp, { once: true });
    this.#queue.push(waiting);
    this.retry();
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  /** Admits every request that can go now. */
  retry(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#turnAway();
    const broke = new Set<object>();
    for (const waiting of this.#queue.slice()) {
      const { entry } = waiting;
      const now = performance.now();
      const hold = broke.has(entry.payer) ? undefined : this.#hold(entry, now);
      if (hold !== undefined) return this.#wait(hold, now);
      const claimed = broke.has(entry.payer) ? 'later' : claimForWaitingRequest(waiting);
      if (claimed === 'later') {
        broke.add(entry.payer);
        waiting.reason = NO_MONEY;
        continue;
      }
      this.#queue.splice(this.#queue.indexOf(waiting), 1);
      tellWhenThrottleEnds(waiting);
      if (claimed === 'now') waiting.resolve(this.#send(entry, now));
    }
  }

  #hold(entry: Entry, now: number): Hold | undefined {
    const { inFlight } = this.#ledger;
    const held = this.#pace.hold(inFlight, now);
    switch (held?.why) {
      case 'paused':
        return { waitMs: held.waitMs, isCertain: true, reason: this.#pauseReason(held.waitMs) };
      case 'alone':
        return { waitMs: held.waitMs, reason: 'one request goes ahead to see whether the provider answers' };
      case 'parallel':
        return { reason: `no more than ${this.#pace.parallel} requests at once, so as not to be refused` };
      case 'gap':
        return { waitMs: held.waitMs, reason: 'requests start one by one after a pause' };
      case undefined:
        break;
    }
    const shortage = this.#ledger.shortage(entry, now);
    if (shortage === undefined) return undefined;
    const reason = throttleShortageReason(shortage.name, shortage.waitMs);
    // Requests in flight will bring new limits. If there are none, do not wait for them.
    if (inFlight > 0)
      return { reason, ...(shortage.waitMs !== undefined && { waitMs: shortage.waitMs, isCertain: true }) };
    const waitMs = Math.min(shortage.waitMs ?? 0, this.#sentAt + SHORTAGE_MS_MAX - now);
    return waitMs > 0 ? { waitMs, isCertain: true, reason } : undefined;
  }

  #wait({ waitMs, isCertain = false, reason }: Hold, now: number): void {
    for (const waiting of this.#queue) {
      waiting.reason = reason;
      const expectedMs = now - waiting.since + (waitMs ?? 0);
      if (!isCertain || waiting.isTold || expectedMs < LONG_MS) continue;
      waiting.isTold = true;
      waiting.entry.onWait({ waitMs: Math.round(expectedMs), reason });
    }
    if (waitMs !== undefined) this.#timer = setTimeout(() => this.retry(), Math.ceil(waitMs));
  }

  #send(entry: Entry, now: number): Ticket {
    const flight = this.#ledger.depart(entry, now);
    this.#pace.sent(now);
    this.#sentAt = now;
    let isOpen = true;
    return {
      began: (headers) => {
        if (!isOpen) return;
        this.#ledger.report(flight, readRateHeaders(headers, Date.now()).rates, performance.now());
        this.#pace.begun(flight.departedAt);
        this.retry();
      },
      leave: (left) => {
        if (!isOpen) return;
        isOpen = false;
        this.#land(flight, left);
        this.retry();
      },
    };
  }

  #land(flight: Flight, { headers, failure, usage }: Seen & { readonly usage: Usage }): void {
    const now = performance.now();
    this.#ledger.land(flight, headers === undefined ? undefined : usage, now);
    if (headers !== undefined) {
      const { rates, retryAfterMs } = readRateHeaders(headers, Date.now());
      this.#ledger.report(flight, rates, now);
      this.#pace.answered(flight.departedAt);
      if (retryAfterMs !== undefined) this.#pace.pause(retryAfterMs, now);
      return;
    }
    if (failure === undefined || !isRateRefusal(failure)) return this.#pace.failed(flight.departedAt);
    this.#refusal = failure;
    this.#ledger.refused(flight);
    this.#pace.refused(failure.retryAfterMs, flight.departedAt, now);
  }

  /** If the pause exceeds the maximum wait, all waiting requests fail. */
  #turnAway(): void {
    const pausedMs = this.#pace.pausedMs(performance.now());
    if (this.#refusal === undefined || pausedMs <= this.#waitMsMax) return;
    const failure = { ...this.#refusal, retryAfterMs: Math.ceil(pausedMs) } as Failure;
    for (const { reject } of this.#queue.splice(0)) reject(new DroverError(failure));
  }

  #pauseReason(waitMs: number): string {
    const what =
      this.#refusal?.kind === 'provider.unavailable' ? 'the provider is overloaded' : 'the provider asked to slow down';
    return `${what}: nothing is sent for ${throttleSeconds(waitMs)}`;
  }
}

function claimForWaitingRequest({ entry, reject }: Waiting): 'now' | 'later' | 'never' {
  try {
    return entry.claim() ? 'now' : 'later';
  } catch (error) {
    reject(error);
    return 'never';
  }
}

function tellWhenThrottleEnds({ entry, since, reason, isTold }: Waiting): void {
  const waitMs = Math.round(performance.now() - since);
  if (!isTold && reason !== '' && waitMs > 0) entry.onWait({ waitMs, reason });
}

const RATE_WORDS: Record<RateName, string> = {
  requests: 'requests',
  tokens: 'tokens',
  'input-tokens': 'input tokens',
  'output-tokens': 'output tokens',
};

function throttleShortageReason(name: RateName, waitMs: number | undefined): string {
  const what = `the provider allows no more ${RATE_WORDS[name]}`;
  return waitMs === undefined ? `${what} for now` : `${what} for ${throttleSeconds(waitMs)}`;
}

function throttleSeconds(ms: number): string {
  return `${ms < 10_000 ? Math.ceil(ms / 100) / 10 : Math.ceil(ms / 1_000)} s`;
}
