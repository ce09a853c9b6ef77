// The rate limits of one lane by the provider's headers, and the share that open requests use.
//
// The size of a request is unknown in advance: the estimate of the prompt is too high on purpose, some providers do
// not count cache reads, and the length of the answer is open. The ledger remembers the latest answers and expects the
// next one to be as large as the largest of them. Without headers there are no limits here.

import type { Wanted } from '@drover/core/model/spending/admission';
import type { Usage } from '@drover/protocol/messages';
import { Allowance } from './allowance.ts';
import type { Rate, RateName } from './rate-headers.ts';

const SAMPLES_MAX = 16;

/** A request in flight. */
export type Flight = {
  readonly departedAt: number;
  readonly wanted: Wanted;
  readonly prompt: number; // tokens that the provider is expected to count
  readonly uncached: number; // the same for limits that do not count cache reads
  /** Limits that had room for it only by their refill. */
  readonly lenders: readonly Allowance[];
  answer: number; // tokens: expected at first, then reported
  reportedAt: number | undefined; // time by which the request had arrived
  landedAt: number | undefined;
};

export type Shortage = { readonly name: RateName; readonly waitMs: number | undefined };

type Account = { readonly rate: Rate; readonly allowance: Allowance };

export class Ledger {
  readonly #accounts = new Map<string, Account>();
  readonly #promptShares: number[] = []; // of the requested amount
  readonly #uncachedShares: number[] = [];
  readonly #answers: number[] = [];
  #flights: Flight[] = [];

  get inFlight(): number {
    return this.#flights.filter(({ landedAt }) => landedAt === undefined).length;
  }

  /** The limit with the longest wait; undefined if all limits have room. */
  shortage(wanted: Wanted, now: number): Shortage | undefined {
    this.#pass(now);
    const expected = this.#expected(wanted);
    const short = [...this.#accounts.values()]
      .map(({ rate, allowance }) => ({
        name: rate.name,
        waitMs: allowance.readyInMs(limitsAtArrival(rate, expected) + limitsAtAnswer(rate, expected)),
      }))
      .filter(({ waitMs }) => waitMs !== 0);
    return short.sort((a, b) => (b.waitMs ?? Infinity) - (a.waitMs ?? Infinity))[0];
  }

  depart(wanted: Wanted, now: number): Flight {
    this.#pass(now);
    const expected = this.#expected(wanted);
    const lenders = [...this.#accounts.values()]
      .filter(({ rate, allowance }) => allowance.take(limitsAtArrival(rate, expected) + limitsAtAnswer(rate, expected)))
      .map(({ allowance }) => allowance);
    const flight: Flight = {
      ...expected,
      wanted,
      lenders,
      departedAt: now,
      reportedAt: undefined,
      landedAt: undefined,
    };
    this.#flights.push(flight);
    return flight;
  }

  /** Applies the rate-limit headers of an answer; once per answer. */
  report(flight: Flight, rates: readonly Rate[], now: number): void {
    if (flight.reportedAt !== undefined) return;
    this.#pass(now);
    flight.reportedAt = now;
    for (const rate of rates) {
      const key = `${rate.name} ${rate.countsCacheReads}`;
      const sighting = { unseen: this.#unseen(flight, rate), ageMs: now - flight.departedAt };
      const account = this.#accounts.get(key);
      if (account === undefined) this.#accounts.set(key, { rate, allowance: new Allowance(rate, sighting, now) });
      else account.allowance.report(rate, sighting, now);
    }
  }

  /** Records that an answer is complete, with its usage if the provider reported it. */
  land(flight: Flight, usage: Usage | undefined, now: number): void {
    this.#pass(now);
    if (usage !== undefined && usage.estimated !== true) {
      this.#learn(flight, usage);
      for (const { rate, allowance } of this.#accounts.values()) {
        const unused = limitsAtAnswer(rate, flight) - limitsAtAnswer(rate, { ...flight, answer: usage.output });
        if (unused !== 0) allowance.giveBack(unused);
      }
      flight.answer = usage.output;
    }
    flight.landedAt = now;
    const open = this.#flights.filter(({ landedAt }) => landedAt === undefined);
    const oldest = Math.min(...open.map(({ departedAt }) => departedAt));
    this.#flights = this.#flights.filter(({ landedAt }) => landedAt === undefined || landedAt > oldest);
  }

  /** Records that the provider refused a request that drover expected to fit. */
  refused({ lenders }: Flight): void {
    for (const allowance of lenders) allowance.distrustRefill();
  }

  // Advances all limits. Call it before the set of requests in flight changes: the provider may or may not have counted
  // them.
  #pass(now: number): void {
    const onTheWay = this.#flights.filter(
      ({ reportedAt, landedAt }) => reportedAt === undefined && landedAt === undefined,
    );
    for (const { rate, allowance } of this.#accounts.values()) {
      allowance.pass(
        now,
        onTheWay.reduce((sum, flight) => sum + limitsAtArrival(rate, flight), 0),
      );
    }
  }

  #expected(wanted: Wanted): Expected {
    const share = (samples: readonly number[]) => (samples.length === 0 ? 1 : Math.max(...samples));
    return {
      prompt: Math.ceil(promptTokensOfRequest(wanted) * share(this.#promptShares)),
      uncached: Math.ceil(promptTokensOfRequest(wanted) * share(this.#uncachedShares)),
      answer: Math.min(wanted.outputTokensMax, this.#answers.length === 0 ? Infinity : Math.max(...this.#answers)),
    };
  }

  #learn({ wanted }: Flight, { input, cacheRead, cacheWrite, output }: Usage): void {
    rememberRateSample(this.#promptShares, (input + cacheRead + cacheWrite) / promptTokensOfRequest(wanted));
    rememberRateSample(this.#uncachedShares, (input + cacheWrite) / promptTokensOfRequest(wanted));
    rememberRateSample(this.#answers, output);
  }

  // Requests may arrive in any order. A report surely includes only those that were seen to arrive before its own
  // request was sent. Answers are counted as they are made, so no report includes those in flight with it.
  #unseen(reporting: Flight, rate: Rate): number {
    const others = this.#flights.filter(
      (flight) => flight !== reporting && (flight.landedAt === undefined || flight.landedAt > reporting.departedAt),
    );
    const prompts = others.filter(({ reportedAt = Infinity }) => reportedAt > reporting.departedAt);
    return (
      prompts.reduce((sum, flight) => sum + limitsAtArrival(rate, flight), 0) +
      [reporting, ...others].reduce((sum, flight) => sum + limitsAtAnswer(rate, flight), 0)
    );
  }
}

type Expected = Pick<Flight, 'prompt' | 'uncached' | 'answer'>;

function promptTokensOfRequest({ inputTokens, inputTokensExpected = inputTokens }: Wanted): number {
  return Math.max(1, inputTokensExpected);
}

/** The limits that count when a request arrives. */
function limitsAtArrival({ name, countsCacheReads }: Rate, { prompt, uncached }: Expected): number {
  switch (name) {
    case 'requests':
      return 1;
    case 'tokens':
    case 'input-tokens':
      return countsCacheReads ? prompt : uncached;
    case 'output-tokens':
      return 0;
  }
}

/** The limits that count while the answer is generated. */
function limitsAtAnswer({ name }: Rate, { answer }: Expected): number {
  return name === 'tokens' || name === 'output-tokens' ? answer : 0;
}

function rememberRateSample(samples: number[], sample: number): void {
  samples.push(sample);
  if (samples.length > SAMPLES_MAX) samples.shift();
}
