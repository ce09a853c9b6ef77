// Limits of a turn: steps, tokens, money and idle time.

import { turnFailureOfSignal, STEPS_MAX_DEFAULT, watchTurnLimits } from '@drover/core/agent/limits';
import { builtinTools } from '@drover/core/tools/builtin';
import { expect, onTestFinished, test, vi } from 'vitest';
import { agentOn, quickRetry } from '../../support/agent.ts';

const usage = { input: 1_000, output: 30, cacheRead: 0, cacheWrite: 0 };
const lists = { calls: [{ name: 'list', args: {} }], usage };

test('steps are limited by default', () => {
  expect(STEPS_MAX_DEFAULT).toBeGreaterThan(10);
  expect(STEPS_MAX_DEFAULT).toBeLessThan(1_000);
});

test('the output token limit ends the turn over all its answers, and keeps the work', async () => {
  const { run, server } = await agentOn(
    { answers: [lists], loop: true },
    { limits: { stepsMax: 9, textCallRetriesMax: 2, outputTokensMax: 61 } },
  );
  const { result } = await run('go');
  expect(result.outcome).toEqual({
    status: 'incomplete',
    failure: {
      kind: 'limit.reached',
      limit: 'output-tokens',
      message: 'the limit of 61 output tokens is reached',
    },
  });
  expect([server.requests.length, result.messages.length, result.usage.output]).toEqual([3, 7, 90]);
});

test('a dollar budget ends the turn before it is exceeded', async () => {
  const price = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 };
  const { run, server } = await agentOn({ answers: [lists], loop: true }, { price, cap: { usd: 0.02 } });
  const { result } = await run('go');
  expect(result.outcome).toMatchObject({ status: 'incomplete', failure: { limit: 'budget' } });
  expect(result.cost).toBeLessThanOrEqual(0.02);
  expect(server.requests.length).toBeGreaterThan(1);
});

test('retries are not progress: an agent that only retries is idle', async () => {
  const { run } = await agentOn(
    { answers: [], otherwise: { fault: { fault: 'status', status: 503 } } },
    {
      retry: { ...quickRetry, attemptsMax: 99, backoffMs: 60, backoffMsMax: 60 },
      limits: { stepsMax: 9, textCallRetriesMax: 2, idleMs: 300 },
    },
  );
  expect((await run('go')).result.outcome).toEqual({
    status: 'error',
    failure: { kind: 'limit.reached', limit: 'idle', message: 'nothing happened for 0.3 s' },
  });
});

test('retries end after a time limit, however many are allowed', async () => {
  const { run, server } = await agentOn(
    { answers: [], otherwise: { fault: { fault: 'status', status: 503 } } },
    { retry: { ...quickRetry, attemptsMax: 99, backoffMs: 100, backoffMsMax: 100, wallMsMax: 350 } },
  );
  expect((await run('go')).result.outcome).toMatchObject({ failure: { kind: 'provider.unavailable' } });
  expect(server.requests.length).toBeLessThan(7);
});

test('an answer resets the retry patience', async () => {
  const failing = Array.from({ length: 40 }, (_, n) => n + 1).filter((n) => n % 5 !== 0);
  const { run } = await agentOn(
    {
      answers: [lists, lists, lists, lists, { text: 'ok' }],
      faults: [{ at: failing, fault: 'status', status: 503 }],
    },
    { tools: builtinTools, retry: { ...quickRetry, attemptsMax: 6 } },
  );
  expect((await run('go')).result.outcome).toEqual({ status: 'done' });
});

test('time in which the user thinks about a question counts against no limit', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const limits = { stepsMax: 1, textCallRetriesMax: 0, timeoutMs: 10_000, idleMs: 4_000 };
  const { signal, hold, progress } = watchTurnLimits(limits, new AbortController().signal);
  vi.advanceTimersByTime(3_000);
  const [first, second] = [hold(), hold()];
  vi.advanceTimersByTime(60_000);
  first();
  vi.advanceTimersByTime(60_000);
  second();
  for (let second = 0; second < 6; second++) {
    vi.advanceTimersByTime(1_000);
    progress();
  }
  expect(signal.aborted).toBe(false);
  vi.advanceTimersByTime(1_500);
  expect(turnFailureOfSignal(signal)).toMatchObject({ limit: 'time', message: 'the time limit of 10 s is reached' });
});
