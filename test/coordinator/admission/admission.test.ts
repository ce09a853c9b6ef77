// The budget of a run: reserved before a request, charged after it, never exceeded, even if workers die.

import type { Event } from '@drover/protocol/events';
import type { Admitted } from '@drover/core/model/spending/admission';
import { Pot } from '@drover/core/model/spending/budget';
import { modelCostOf } from '@drover/core/model/catalog';
import { sumUsage, NO_USAGE } from '@drover/core/model/spending/usage';
import type { Usage } from '@drover/protocol/messages';
import { RunAdmission, type RunAdmissionOptions } from '@drover/coordinator/admission/admission';
import { type ModelTerms, NOTHING_SPENT } from '@drover/coordinator/admission/purse';
import { Throttle } from '@drover/coordinator/admission/throttle';
import { expect, test } from 'vitest';
import { never } from '../../support/agent.ts';
import { stoppedClock } from '../../support/clock.ts';
import { proves } from '../../support/proves.ts';
import { herdOn, type Told } from './herd.ts';

const PRICE = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 };
const WANTED = { inputTokens: 1_000, outputTokensMax: 1_000 };
const used = (input: number, output: number): Usage => ({ input, output, cacheRead: 0, cacheWrite: 0 });
const OVER = { failure: { kind: 'limit.reached', limit: 'budget' } };

function runOf({ price, ...options }: Partial<RunAdmissionOptions & ModelTerms>) {
  const told: Told[] = [];
  const throttle = new Throttle({ waitMsMax: 5_000, random: () => 0.5 });
  const admission = new RunAdmission({
    before: NOTHING_SPENT,
    settled: async () => undefined,
    ...options,
    models: new Map([['one', { lane: throttle.open('one', 64).lane, ...(price !== undefined && { price }) }]]),
    emit: (event, place) => told.push({ event, place }),
  });
  const place = (worker: number) => admission.admissionFor({ worker, task: `t${worker}`, attempt: 1 });
  return { admission, told, place };
}

const answered = (admitted: Admitted, usage: Usage) => admitted.settle(usage, { headers: {} });

test('spent, reserved and left are reported before and after each request', async () => {
  const { told, place } = runOf({ cap: { usd: 1 }, price: PRICE });
  const first = await place(1).admit(WANTED, never);
  first.began?.({});
  const second = await place(2).admit(WANTED, never);
  answered(first, used(800, 100));
  answered(second, used(900, 50));
  const most = { input: 0, output: 1_000, cacheRead: 0, cacheWrite: 1_000, estimated: true };
  const balance = (spent: number, reserved: number) => ({
    type: 'budget',
    spent: expect.closeTo(spent),
    reserved: expect.closeTo(reserved),
    cap: { usd: 1 },
    cost: expect.closeTo(spent),
  });
  const mostCost = expect.closeTo(0.01125) as number;
  const request = (cost: number) => ({ requestCost: expect.closeTo(cost) as number });
  const [one, two] = [1, 2].map((worker) => ({ worker, task: `t${worker}`, attempt: 1 }));
  expect(told).toEqual([
    { event: { ...balance(0, 0.01125), usage: NO_USAGE, most, mostCost }, place: one },
    { event: { ...balance(0, 0.0225), usage: NO_USAGE, most, mostCost }, place: two },
    { event: { ...balance(0.0018, 0.01125), ...request(0.0018), usage: used(800, 100) }, place: one },
    { event: { ...balance(0.0032, 0), ...request(0.0014), usage: used(1_700, 150) }, place: two },
  ]);
});

test('runs with one shared budget wait for each other, in different lanes too', async () => {
  const pot = new Pot();
  const [one, other] = [runOf({ cap: { tokens: 3_000 }, pot }), runOf({ cap: { tokens: 3_000 }, pot })];
  const first = await one.place(1).admit(WANTED, never);
  const waiting = other.place(1).admit(WANTED, never);
  expect(other.told).toEqual([]);
  answered(first, used(100, 100));
  answered(await waiting, used(1_000, 1_000));
  await expect(one.place(2).admit(WANTED, never)).rejects.toMatchObject(OVER);
});

test('with a cap every request is recorded before it is sent; without a cap none is', async () => {
  const pass = stoppedClock();
  const written = Promise.withResolvers<void>();
  const capped = runOf({ cap: { tokens: 10_000 }, settled: () => written.promise });
  let isSent = false;
  const sent = capped.place(1).admit(WANTED, never);
  void sent.then(() => (isSent = true));
  await pass(1_000);
  expect([isSent, capped.told.map(({ event }) => event.type)]).toEqual([false, ['budget']]);
  written.resolve();
  await sent;

  const free = runOf({ settled: () => Promise.reject(new Error('nothing is to be written')) });
  await free.place(1).admit(WANTED, never);
  expect(free.told).toEqual([]);
});

test('without a price only tokens are counted, and no cost is reported', async () => {
  const { admission, place } = runOf({ cap: { tokens: 10_000 } });
  answered(await place(1).admit(WANTED, never), used(800, 100));
  expect(admission.balance).toEqual({ usage: used(800, 100), spent: 900, reserved: 0, cap: { tokens: 10_000 } });
});

proves('budget.holds', 'fifty concurrent workers never exceed a dollar cap, at any event', async () => {
  const cap = { usd: 0.2 };
  const spent: number[] = [];
  const script = {
    answers: [{ text: { repeat: 'word ', times: 180 }, calls: [{ name: 'echo', args: { text: 'x'.repeat(400) } }] }],
    loop: true,
  };
  const onEvent = (event: Event) => void (event.type === 'budget' && spent.push(event.spent + event.reserved));
  const { run, server, admission } = await herdOn(script, { cap, price: PRICE, onEvent });
  const results = await run(50);

  expect(Math.max(...spent)).toBeLessThanOrEqual(cap.usd);
  const total = results.reduce((sum, { usage }) => sumUsage(sum, usage), NO_USAGE);
  expect(admission.balance).toMatchObject({ usage: total, reserved: 0 });
  expect(modelCostOf(total, PRICE)).toBeLessThanOrEqual(cap.usd);
  // Most of the budget is spent, and not lost in reservations.
  expect(modelCostOf(total, PRICE)).toBeGreaterThan(cap.usd * 0.8);
  expect(server.requests.filter(({ status }) => status !== 200)).toEqual([]);
  const endings = results.map(({ outcome }) => ('failure' in outcome ? outcome.failure.kind : outcome.status));
  expect(new Set(endings)).toEqual(new Set(['limit.reached']));
});

test('a request that does not fit waits while others may return money', async () => {
  const pass = stoppedClock();
  const { told, place } = runOf({ cap: { tokens: 2_500 } });
  const first = await place(1).admit(WANTED, never);
  first.began?.({});
  const waiting = place(2).admit(WANTED, never);
  await pass(1_000);
  answered(first, used(100, 100));
  const second = await waiting;
  expect(second.outputTokensMax).toBe(1_000);
  expect(told.map(({ event, place: where }) => [event.type, where.task])).toEqual([
    ['budget', 't1'],
    ['budget', 't1'],
    ['throttle_wait', 't2'],
    ['budget', 't2'],
  ]);
  expect(told[2]?.event).toMatchObject({ reason: 'what is left of the budget is reserved for requests under way' });
});

test('a request that does not fit fails if no other can return money', async () => {
  const { place } = runOf({ cap: { tokens: 2_500 } });
  const first = await place(1).admit(WANTED, never);
  first.began?.({});
  const waiting = place(2).admit(WANTED, never);
  answered(first, used(1_000, 1_000));
  await expect(waiting).rejects.toMatchObject(OVER);
  await expect(place(3).admit(WANTED, never)).rejects.toMatchObject(OVER);
});

test('an answer is shortened only if no other request can return money', async () => {
  const pass = stoppedClock();
  const { place } = runOf({ cap: { tokens: 20_000 } });
  const wanted = { inputTokens: 1_000, outputTokensMax: 16_000 };
  const first = await place(1).admit(wanted, never);
  first.began?.({});
  const second = place(2).admit(wanted, never);
  await pass(1_000);
  answered(first, used(1_000, 9_000));
  expect((await second).outputTokensMax).toBe(9_000);
});

test('a request does not wait for a full answer if enough of it fits', async () => {
  const { place } = runOf({ cap: { tokens: 24_000 } });
  const wanted = { inputTokens: 1_000, outputTokensMax: 16_000 };
  const first = await place(1).admit(wanted, never);
  first.began?.({});
  expect((await place(2).admit(wanted, never)).outputTokensMax).toBe(6_000);
});

test('cancelling a wait for money frees its place', async () => {
  const { place } = runOf({ cap: { tokens: 2_500 } });
  const first = await place(1).admit(WANTED, never);
  first.began?.({});
  const stop = new AbortController();
  const cancelled = place(2).admit({ ...WANTED, inputTokens: 1_400 }, stop.signal);
  const behind = place(3).admit({ inputTokens: 100, outputTokensMax: 200 }, never);
  stop.abort();
  await expect(cancelled).rejects.toMatchObject({ failure: { kind: 'aborted' } });
  await behind;
});

test('a worker that dies during a request is charged the worst case; others continue', async () => {
  const { admission, place } = runOf({ cap: { tokens: 4_000 } });
  const dying = place(1);
  const lost = await dying.admit(WANTED, never);
  lost.began?.({});
  const waiting = place(2).admit({ inputTokens: 1_000, outputTokensMax: 1_500 }, never);
  dying.abandon();
  expect((await waiting).outputTokensMax).toBe(1_000);
  expect(admission.balance).toMatchObject({
    usage: { input: 0, output: 1_000, cacheRead: 0, cacheWrite: 1_000, estimated: true },
    spent: 2_000,
    reserved: 2_000,
  });
  // Messages of a dead worker are ignored.
  answered(lost, used(5, 5));
  dying.abandon();
  expect(admission.balance.spent).toBe(2_000);
});

test.each([
  { kind: 'aborted', by: 'user' },
  { kind: 'limit.reached', limit: 'time', message: 'the time is up' },
] as const)('a request that is cut off ($kind) is charged its worst case', async (failure) => {
  const { admission, told, place } = runOf({ cap: { tokens: 3_000 } });
  const admitted = await place(1).admit(WANTED, never);
  admitted.settle(NO_USAGE, { failure });
  expect(admission.balance).toMatchObject({ spent: 2_000, reserved: 0, usage: { estimated: true } });
  const warnings = told.flatMap(({ event }) => (event.type === 'warning' ? [event.message] : []));
  expect(warnings).toEqual([expect.stringContaining('the most that it can have cost counts as spent')]);
});

test('without a cap a request that is cut off is charged what was received', async () => {
  const { admission, told, place } = runOf({});
  const admitted = await place(1).admit(WANTED, never);
  admitted.settle(used(100, 5), { failure: { kind: 'aborted', by: 'user' } });
  expect([admission.balance.usage, told.length]).toEqual([used(100, 5), 1]);
});

test('a dead worker’s charged or waiting requests cost nothing more', async () => {
  const { admission, place } = runOf({});
  const [holder, dying] = [place(1), place(2)];
  const held = await holder.admit(WANTED, never);
  const waiting = dying.admit(WANTED, never); // the first request goes alone
  dying.abandon();
  await expect(waiting).rejects.toMatchObject({ failure: { kind: 'worker.lost' } });
  await expect(dying.admit(WANTED, never)).rejects.toMatchObject({ failure: { kind: 'worker.lost' } });
  answered(held, used(10, 10));
  holder.abandon();
  expect(admission.balance).toEqual({ usage: used(10, 10), spent: 20, reserved: 0 });
});

test('a worker that dies as it is admitted is charged nothing', async () => {
  const { admission, place } = runOf({});
  const dying = place(1);
  const admitted = dying.admit(WANTED, never);
  dying.abandon();
  await expect(admitted).rejects.toMatchObject({ failure: { kind: 'worker.lost' } });
  expect(admission.balance).toEqual({ usage: NO_USAGE, spent: 0, reserved: 0 });
});

test('a resumed run keeps its earlier spending', async () => {
  const before = { total: { usage: used(1_000, 500) }, tasks: new Map([['t1', { usage: used(1_000, 500) }]]) };
  const { admission, place } = runOf({ cap: { tokens: 4_000 }, taskCap: { tokens: 2_000 }, before });
  expect(admission.balance).toMatchObject({ spent: 1_500, usage: used(1_000, 500) });
  await expect(place(1).admit(WANTED, never)).rejects.toMatchObject(OVER);
  const second = await place(2).admit(WANTED, never);
  expect(second.outputTokensMax).toBe(1_000);
  answered(second, used(1_000, 1_000));
  await expect(place(3).admit(WANTED, never)).rejects.toMatchObject(OVER);
});

test('dollars spent on another model stay as they were and count against the cap', async () => {
  const dear = { usage: used(1_000, 500), cost: 4.995 };
  const { admission, place } = runOf({ cap: { usd: 5 }, price: PRICE, before: { total: dear, tasks: new Map() } });
  expect(admission.balance).toMatchObject({ spent: 4.995, cost: 4.995 });
  await expect(place(1).admit({ inputTokens: 5_000, outputTokensMax: 1_000 }, never)).rejects.toMatchObject(OVER);
  answered(await place(1).admit({ inputTokens: 100, outputTokensMax: 300 }, never), used(100, 100));
  expect(admission.balance).toMatchObject({ spent: expect.closeTo(4.9961), cost: expect.closeTo(4.9961) });
});

test('a task cap ends that task over all its attempts, and no other', async () => {
  const { admission, place } = runOf({ taskCap: { tokens: 3_000 } });
  answered(await place(1).admit(WANTED, never), used(1_000, 700));
  const again = admission.admissionFor({ worker: 4, task: 't1', attempt: 2 });
  // The rest of the budget allows only a shorter answer.
  const short = await again.admit(WANTED, never);
  expect(short.outputTokensMax).toBe(300);
  answered(short, used(1_000, 300));
  await expect(again.admit(WANTED, never)).rejects.toMatchObject({
    failure: { kind: 'limit.reached', limit: 'budget', message: 'task t1 has used up what one task may spend' },
  });
  await place(2).admit(WANTED, never);
  await admission.admissionFor({ worker: 0 }).admit(WANTED, never);
});

test('after an underestimate more is reserved', async () => {
  const { admission, told, place } = runOf({ cap: { tokens: 100_000 } });
  for (const factor of [1, 1.5]) answered(await place(1).admit(WANTED, never), used(2_000 * factor, 2_000));
  const next = await place(1).admit(WANTED, never);
  expect([next.outputTokensMax, admission.balance.reserved]).toEqual([1_000, 5_000]);
  expect(told.map(({ event }) => event.type)).toEqual([
    'budget',
    'warning',
    ...Array.from({ length: 4 }, () => 'budget'),
  ]);
});

test('an answer that uses exactly its reservation causes no warning and no increase', async () => {
  const { admission, told, place } = runOf({ cap: { tokens: 100_000 } });
  answered(await place(1).admit(WANTED, never), used(1_000, 1_000));
  await place(1).admit(WANTED, never);
  expect(admission.balance.reserved).toBe(2_000);
  expect(told.map(({ event }) => event.type)).toEqual(['budget', 'budget', 'budget']);
});

test('a dollar cap without a price is refused', () => {
  expect(() => runOf({ cap: { usd: 1 } })).toThrow('the price of the model is not known');
  expect(() => runOf({ cap: { tokens: 1 }, taskCap: { usd: 1 } })).toThrow('the price of the model is not known');
});
