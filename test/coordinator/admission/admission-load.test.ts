// Many workers and one provider over HTTP: limits are respected, and a refusal slows all workers.

import type { Rehearsal } from '@drover/rehearsal/server';
import { describe, expect, test } from 'vitest';
import { APIS } from '../../support/agent.ts';
import { arrivals, herdOn, mostInFlight, refusals } from './herd.ts';
import { proves } from '../../support/proves.ts';

const STEPS = [{ calls: [{ name: 'echo', args: { text: 'one' } }], delayMs: 50 }, { text: 'done' }];
const WORKERS = 32;
const ALL_DONE = Array<string>(WORKERS).fill('done');

describe.each(APIS)('%s', (api) => {
  test('32 workers with a bucket of twelve requests lose no task and get no refusal', async () => {
    const limits = { requests: 12, windowMs: 250 };
    const { server, run, told } = await herdOn({ answers: STEPS, order: 'conversation', limits }, { api });
    const results = await run(WORKERS);
    expect(results.map(({ outcome }) => outcome.status)).toEqual(ALL_DONE);
    expect([server.requests.length, refusals(server)]).toEqual([WORKERS * STEPS.length, 0]);
    expect(mostInFlight(server)).toBeLessThanOrEqual(12);
    const reasons = told.flatMap(({ event }) => (event.type === 'throttle_wait' ? [event.reason] : []));
    const kinds = new Set(reasons.map((reason) => reason.replace(/for (now|[\d.]+ s)$/, 'for a while')));
    expect([...kinds].sort()).toEqual([
      'one request goes ahead to see whether the provider answers',
      'the provider allows no more requests for a while',
    ]);
  });

  test('the other workers start only when the first answer has begun', async () => {
    const answers = [{ text: { repeat: 'word ', times: 40 }, delayMs: 150, tokensPerSecond: 80 }];
    const { server, run } = await herdOn({ answers, loop: true }, { api });
    await run(3);
    const [first, ...others] = server.requests;
    for (const { at } of others) {
      expect(at).toBeGreaterThanOrEqual((first?.at ?? 0) + 145);
      expect(at).toBeLessThan(first?.closedAt ?? 0);
    }
  });

  test('32 workers with a bucket of tokens lose no task and get few refusals', async () => {
    const limits = { inputTokens: 6_000, windowMs: 250 };
    const script = { answers: STEPS, order: 'conversation', limits, cache: { enabled: false } } as const;
    const { server, run } = await herdOn(script, { api });
    const results = await run(WORKERS);
    expect(results.map(({ outcome }) => outcome.status)).toEqual(ALL_DONE);
    expect(refusals(server)).toBeLessThanOrEqual(2);
    const smallest = Math.min(...results.map(({ usage }) => usage.input / STEPS.length));
    expect(mostInFlight(server) * smallest).toBeLessThanOrEqual(6_000);
  });
});

test('32 workers with a bucket of output tokens lose no task and get few refusals', async () => {
  const answers = [{ text: { repeat: 'word ', times: 40 }, calls: STEPS[0]!.calls! }, { text: 'done' }];
  const limits = { outputTokens: 600, windowMs: 250 };
  const { server, run } = await herdOn({ answers, order: 'conversation', limits });
  const results = await run(WORKERS);
  expect(results.map(({ outcome }) => outcome.status)).toEqual(ALL_DONE);
  expect(refusals(server)).toBeLessThanOrEqual(2);
});

/** The time of the server's first refusal. */
const refusedAt = ({ requests }: Rehearsal) => requests.find(({ status }) => (status ?? 0) >= 400)?.closedAt ?? 0;

proves('throttle.one-gate', 'one 429 pauses all workers for its time, and then they start one by one', async () => {
  const pauseMs = 1_200;
  const faults = [{ at: 30, fault: 'status', status: 429, headers: { 'retry-after-ms': String(pauseMs) } }] as const;
  const parallelMax = 8;
  const { server, run } = await herdOn({ answers: STEPS, order: 'conversation', faults }, { parallelMax });
  const results = await run(WORKERS);
  expect(results.map(({ outcome }) => outcome.status)).toEqual(ALL_DONE);
  expect(refusals(server)).toBe(1);

  const at = refusedAt(server);
  // Requests sent before the refusal came back still arrive, on a busy machine at any later time.
  const late = arrivals(server).filter((arrival) => arrival > at && arrival < at + pauseMs);
  expect(late.length).toBeLessThan(parallelMax);
  const [first = 0, , , , fifth = 0] = arrivals(server).filter((arrival) => arrival >= at + pauseMs);
  expect(fifth - first).toBeGreaterThanOrEqual(100);
});

test('an overloaded provider without retry-after is paused, then probed by one request', async () => {
  const faults = [{ at: 30, fault: 'status', status: 529 }] as const;
  const parallelMax = 4;
  const { server, run, told } = await herdOn({ answers: STEPS, order: 'conversation', faults }, { parallelMax });
  const results = await run(WORKERS);
  expect(results.map(({ outcome }) => outcome.status)).toEqual(ALL_DONE);
  const at = refusedAt(server);
  const late = arrivals(server).filter((arrival) => arrival > at && arrival < at + 700);
  expect(late.length).toBeLessThan(parallelMax);
  const reasons = told.map(({ event }) => (event.type === 'throttle_wait' ? event.reason : ''));
  expect(reasons.some((reason) => reason.startsWith('the provider is overloaded: nothing is sent for'))).toBe(true);
});

test('an undeclared concurrency limit is found, and no task is lost', async () => {
  // Long enough for all requests to be in flight together on a busy machine.
  const answers = STEPS.map((step) => ({ ...step, delayMs: 400 }));
  const script = { answers, order: 'conversation', limits: { concurrency: 8 } } as const;
  const { server, run } = await herdOn(script, { api: 'openai', parallelMax: 16 });
  const results = await run(16);
  expect(results.map(({ outcome }) => outcome.status)).toEqual(Array(16).fill('done'));
  expect([refusals(server) > 0, refusals(server) < 16]).toEqual([true, true]);
});

test('a worker that waits for admission is not idle', async () => {
  const limits = { requests: 2, windowMs: 600 };
  const { run } = await herdOn({ answers: [{ text: 'done' }], loop: true, limits }, { idleMs: 400 });
  const results = await run(6);
  expect(results.map(({ outcome }) => outcome.status)).toEqual(Array(6).fill('done'));
});

test('cancelling a waiting worker does not block the others', async () => {
  const limits = { requests: 4, windowMs: 400 };
  const { agent, admission } = await herdOn({ answers: STEPS, order: 'conversation', limits });
  const stop = new AbortController();
  const cancelled = Array.from({ length: 8 }, (_, at) => agent(at + 1, stop.signal));
  const others = Array.from({ length: 4 }, (_, at) => agent(at + 9));
  setTimeout(() => stop.abort(), 100);
  const ends = await Promise.all(cancelled);
  expect(ends.every(({ outcome }) => outcome.status !== 'done')).toBe(true);
  expect((await Promise.all(others)).map(({ outcome }) => outcome.status)).toEqual(Array(4).fill('done'));
  expect(admission.balance.reserved).toBe(0);
});
