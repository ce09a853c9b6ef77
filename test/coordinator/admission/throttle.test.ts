// The throttle alone: which requests go, which wait, and what is reported.

import { DroverError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import {
  Lane,
  throttleLaneKey,
  Throttle,
  type Entry,
  type Ticket,
  type Wait,
} from '@drover/coordinator/admission/throttle';
import { expect, test } from 'vitest';
import { never } from '../../support/agent.ts';
import { stoppedClock } from '../../support/clock.ts';

const USAGE = { input: 100, output: 10, cacheRead: 0, cacheWrite: 0 };
const THROTTLED: Failure = { kind: 'provider.throttled', status: 429, message: 'slow down' };

type Asked = { readonly promise: Promise<Ticket>; readonly waits: readonly Wait[] };

function laneOf(parallelMax: number): Lane {
  return new Throttle({ waitMsMax: 5_000, random: () => 0.5 }).open('one', parallelMax).lane;
}

function ask(lane: Lane, signal: AbortSignal = never, more: Partial<Entry> = {}): Asked {
  const waits: Wait[] = [];
  const entry = { inputTokens: 100, outputTokensMax: 50, payer: lane, claim: () => true, ...more };
  const promise = lane.enter({ ...entry, onWait: (wait) => waits.push(wait) }, signal);
  promise.catch(() => undefined); // a caller that needs the result awaits it
  return { promise, waits };
}

/** A lane that has seen an answer with these headers. */
async function provenLane(parallelMax: number, headers: Record<string, string> = {}): Promise<Lane> {
  const lane = laneOf(parallelMax);
  const ticket = await ask(lane).promise;
  ticket.leave({ usage: USAGE, headers });
  return lane;
}

const quotaOf = (remaining: number, resetMs: number) => ({
  'x-ratelimit-limit-requests': '100',
  'x-ratelimit-remaining-requests': String(remaining),
  'x-ratelimit-reset-requests': `${resetMs}ms`,
});

test('requests go in order of arrival, one alone until an answer has begun', async () => {
  const pass = stoppedClock();
  const lane = laneOf(4);
  const order: number[] = [];
  const asked = [0, 1, 2, 3].map((at) => {
    const one = ask(lane);
    void one.promise.then(() => order.push(at));
    return one;
  });
  const first = await asked[0]!.promise;
  await pass(1_000);
  expect([order, lane.inFlight, lane.waiting]).toEqual([[0], 1, 3]);
  first.began({});
  await Promise.all(asked.map(({ promise }) => promise));
  expect([order, lane.inFlight]).toEqual([[0, 1, 2, 3], 4]);
});

test('concurrency stays within its limit, and each finished request admits one', async () => {
  const pass = stoppedClock();
  const lane = await provenLane(2);
  const asked = [ask(lane), ask(lane), ask(lane)];
  const [first] = await Promise.all([asked[0]!.promise, asked[1]!.promise]);
  expect([lane.inFlight, lane.waiting]).toEqual([2, 1]);
  await pass(1_000);
  first.leave({ usage: USAGE, headers: {} });
  first.leave({ usage: USAGE, headers: {} });
  await asked[2]!.promise;
  expect([lane.inFlight, lane.waiting]).toEqual([2, 0]);
  expect(asked[2]?.waits.map(({ reason }) => reason)).toEqual([
    'no more than 2 requests at once, so as not to be refused',
  ]);
});

test('concurrency stays within the rest that the last answer reported', async () => {
  // The bucket refills so slowly that delays of a busy machine do not matter.
  const lane = await provenLane(64, quotaOf(3, 600_000));
  const stop = new AbortController();
  const asked = Array.from({ length: 10 }, () => ask(lane, stop.signal));
  await Promise.all(asked.slice(0, 3).map(({ promise }) => promise));
  expect([lane.inFlight, lane.waiting]).toEqual([3, 7]);
  stop.abort();
  await Promise.allSettled(asked.map(({ promise }) => promise));
});

test('requests beyond the reported rest go as the bucket refills', async () => {
  const lane = await provenLane(64, quotaOf(3, 2_000));
  const asked = Array.from({ length: 10 }, () => ask(lane));
  await Promise.all(asked.map(({ promise }) => promise));
  expect(asked[3]?.waits[0]?.reason).toMatch(/^the provider allows no more requests for 0\.\d s$/);
});

test('a long wait is reported at once, and only once', async () => {
  const pass = stoppedClock();
  const lane = await provenLane(64, quotaOf(0, 60_000));
  const stop = new AbortController();
  const { promise, waits } = ask(lane, stop.signal, {});
  expect(waits).toEqual([]);
  const slow = await provenLane(64, { ...quotaOf(0, 60_000), 'x-ratelimit-limit-requests': '20' });
  const long = ask(slow, stop.signal);
  expect(long.waits).toEqual([{ waitMs: expect.any(Number), reason: expect.stringMatching(/requests for 3\.\d s$/) }]);
  await pass(5);
  stop.abort();
  await expect(long.promise).rejects.toMatchObject({ failure: { kind: 'aborted' } });
  await expect(promise).rejects.toMatchObject({ failure: { kind: 'aborted' } });
  expect([long.waits.length, waits.length]).toEqual([1, 1]);
});

test('a request without a wait reports none', async () => {
  const lane = await provenLane(2);
  const { promise, waits } = ask(lane);
  await promise;
  expect(waits).toEqual([]);
});

test('a cancelled request leaves the queue at once, and the others move up', async () => {
  const lane = await provenLane(1);
  const stop = new AbortController();
  const holder = await ask(lane).promise;
  const leaving = ask(lane, stop.signal);
  const behind = ask(lane);
  stop.abort(new DroverError({ kind: 'aborted', by: 'shutdown' }));
  await expect(leaving.promise).rejects.toMatchObject({ failure: { kind: 'aborted', by: 'shutdown' } });
  expect(lane.waiting).toBe(1);
  holder.leave({ usage: USAGE, headers: {} });
  await behind.promise;
  await expect(ask(lane, stop.signal).promise).rejects.toMatchObject({ failure: { kind: 'aborted' } });
});

test('a refusal of one request pauses all, and then they start one by one', async () => {
  const lane = await provenLane(8);
  const one = await ask(lane).promise;
  const refusedAt = performance.now();
  one.leave({ usage: USAGE, failure: { ...THROTTLED, retryAfterMs: 200 } });
  const asked = Array.from({ length: 4 }, () => ask(lane));
  const times = asked.map(({ promise }) => promise.then((ticket) => (ticket.began({}), performance.now())));
  const [first = 0, ...others] = await Promise.all(times);
  expect(first - refusedAt).toBeGreaterThanOrEqual(200);
  // A gap precedes each request. Gaps count from the start, since a reader of the clock may be late.
  expect((others.at(-1) ?? 0) - refusedAt).toBeGreaterThanOrEqual(200 + 290);
  expect(asked[0]?.waits[0]?.reason).toMatch(/^the provider asked to slow down: nothing is sent for 0\.\d s$/);
});

test('an overloaded provider is reported as such', async () => {
  const lane = await provenLane(8);
  const one = await ask(lane).promise;
  one.leave({
    usage: USAGE,
    failure: { kind: 'provider.unavailable', status: 529, message: 'Overloaded', retryAfterMs: 1_500 },
  });
  const stop = new AbortController();
  const { waits } = ask(lane, stop.signal);
  expect(waits).toEqual([
    { waitMs: expect.any(Number), reason: expect.stringMatching(/^the provider is overloaded: nothing is sent for 1/) },
  ]);
  stop.abort();
});

test('an answer that asks for a wait is obeyed too', async () => {
  const lane = await provenLane(8, { 'retry-after-ms': '150' });
  const begun = performance.now();
  await ask(lane).promise;
  expect(performance.now() - begun).toBeGreaterThanOrEqual(120);
});

test('a retry time beyond the maximum wait fails every request with that reason', async () => {
  const lane = await provenLane(8);
  const one = await ask(lane).promise;
  const hour = 3_600_000;
  one.leave({ usage: USAGE, failure: { ...THROTTLED, retryAfterMs: hour } });
  const told = { failure: { kind: 'provider.throttled', message: 'slow down', retryAfterMs: expect.any(Number) } };
  await expect(ask(lane).promise).rejects.toMatchObject(told);
  expect(lane.waiting).toBe(0);
});

test('a request without money blocks only requests of the same payer', async () => {
  const pass = stoppedClock();
  const lane = await provenLane(8);
  let hasMoney = false;
  const poor = { payer: {}, claim: () => hasMoney };
  const first = ask(lane, never, poor);
  const second = ask(lane, never, { ...poor, claim: () => true });
  await ask(lane).promise;
  expect([lane.inFlight, lane.waiting]).toEqual([1, 2]);
  await pass(1_000);
  hasMoney = true;
  lane.retry();
  await Promise.all([first.promise, second.promise]);
  expect(first.waits.map(({ reason }) => reason)).toEqual([
    'what is left of the budget is reserved for requests under way',
  ]);
});

test('a request that can no longer be paid fails and does not block others', async () => {
  const lane = await provenLane(8);
  const broke = ask(lane, never, {
    claim: () => {
      throw new DroverError({ kind: 'limit.reached', limit: 'budget', message: 'no more' });
    },
  });
  await expect(broke.promise).rejects.toMatchObject({ failure: { kind: 'limit.reached' } });
  await ask(lane).promise;
});

test('limits without a reset hold during requests; when idle one request probes them', async () => {
  const pass = stoppedClock();
  const lane = await provenLane(8, { 'x-ratelimit-remaining-requests': '0' });
  const first = await ask(lane).promise;
  const second = ask(lane);
  await pass(1_000);
  expect([lane.inFlight, lane.waiting]).toEqual([1, 1]);
  first.leave({ usage: USAGE, headers: {} });
  await second.promise;
});

test('cached tokens count only if the provider counts them', async () => {
  const pass = stoppedClock();
  const cached = { input: 10, output: 5, cacheRead: 990, cacheWrite: 0 };
  const counted = async (headers: Record<string, string>) => {
    const lane = laneOf(8);
    const first = await ask(lane, never, { inputTokens: 1_000 }).promise;
    first.leave({ usage: cached, headers });
    const stop = new AbortController();
    for (let count = 0; count < 3; count++) void ask(lane, stop.signal, { inputTokens: 1_000 });
    await pass(1_000);
    const { inFlight } = lane;
    stop.abort();
    return inFlight;
  };
  const left = (prefix: string, suffix: string) => ({
    [`${prefix}limit${suffix}`]: '2001',
    [`${prefix}remaining${suffix}`]: '1005',
  });
  expect([
    await counted(left('anthropic-ratelimit-input-tokens-', '')),
    await counted(left('x-ratelimit-', '-tokens')),
  ]).toEqual([3, 1]);
});

test('a lane is a provider, a key and a model, and does not reveal the key', () => {
  const account = { provider: 'anthropic', baseUrl: 'https://api.example', apiKey: 'sk-secret', model: 'm' };
  const keys = [account, { ...account, apiKey: 'sk-other' }, { ...account, model: 'n' }].map(throttleLaneKey);
  expect(new Set(keys).size).toBe(3);
  expect(keys.join()).not.toContain('sk-');
  expect(throttleLaneKey({ ...account })).toBe(keys[0]);
});

test('runs that open the same lane share it, with room for all of them', async () => {
  const throttle = new Throttle({ waitMsMax: 5_000, random: () => 0.5 });
  const [one, two] = [throttle.open('a', 1), throttle.open('a', 2)];
  expect(one.lane).toBe(two.lane);
  expect(throttle.open('b', 1).lane).not.toBe(one.lane);
  const first = await ask(one.lane).promise;
  first.began({});
  await Promise.all([ask(two.lane).promise, ask(two.lane).promise]);
  const fourth = ask(one.lane);
  expect([one.lane.inFlight, one.lane.waiting]).toEqual([3, 1]);
  two.close();
  two.close();
  first.leave({ usage: USAGE, headers: {} });
  // Two requests are in flight, and there is room for one more.
  expect(one.lane.waiting).toBe(1);
  void fourth;
});

test('a lane without open runs is evicted, unless the provider asked for a pause', async () => {
  const throttle = new Throttle({ waitMsMax: 5_000, random: () => 0.5 });
  const [calm, paused] = [throttle.open('calm', 1), throttle.open('paused', 1)];
  (await ask(paused.lane).promise).leave({ usage: USAGE, failure: { ...THROTTLED, retryAfterMs: 4_000_000 } });
  calm.close();
  paused.close();
  expect(throttle.open('calm', 1).lane).not.toBe(calm.lane);
  expect(throttle.open('paused', 1).lane).toBe(paused.lane);
});
