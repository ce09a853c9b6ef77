// Cancelling at any moment: fast, complete, and the conversation stays usable.

import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { agentOn, APIS, quickRetry } from '../../support/agent.ts';
import { proves } from '../../support/proves.ts';
import { story } from '../../support/story.ts';

test.each(APIS)('%s: cancelling a streaming answer closes the socket and cancels the turn', async (api) => {
  const { run, server } = await agentOn(
    { answers: [{ text: 'word '.repeat(2_000), tokensPerSecond: 50 }, { text: 'Again.' }] },
    { api },
  );
  const controller = new AbortController();
  const running = run('go', controller.signal);
  await server.received(1);
  await sleep(150);
  const cancelledAt = Date.now();
  controller.abort();
  const { events, result } = await running;
  const request = await server.settled(1);
  expect(request.aborted).toBe(true);
  expect((request.closedAt ?? Infinity) - cancelledAt).toBeLessThan(500);
  expect(result.outcome).toEqual({ status: 'cancelled' });
  expect(story(events).slice(-2)).toEqual(['cancelled', 'session ends: cancelled']);
  expect((await run('and now')).result.outcome).toEqual({ status: 'done' });
  expect(server.rejections).toBe(0);
});

test('cancelling ends the wait for a retry', async () => {
  const { run, server } = await agentOn(
    { answers: [], otherwise: { fault: { fault: 'status', status: 429, headers: { 'retry-after': '600' } } } },
    { retry: { ...quickRetry, waitMsMax: 1e6, wallMsMax: 1e6 } },
  );
  const controller = new AbortController();
  const running = run('go', controller.signal);
  await server.settled(1);
  setTimeout(() => controller.abort(), 50);
  expect((await running).result.outcome).toEqual({ status: 'cancelled' });
  expect(server.requests).toHaveLength(1);
});

test('cancelling closes the socket within a tenth of a second', async () => {
  // The fastest of several tries, since the machine may be busy for a while.
  const tookMs: number[] = [];
  for (let round = 0; round < 5; round++) {
    const { run, server } = await agentOn({ answers: [{ text: 'word '.repeat(2_000), tokensPerSecond: 50 }] });
    const controller = new AbortController();
    const running = run('go', controller.signal);
    await server.received(1);
    await sleep(50);
    const cancelledAt = Date.now();
    controller.abort();
    await running;
    tookMs.push(((await server.settled(1)).closedAt ?? Infinity) - cancelledAt);
  }
  expect(Math.min(...tookMs)).toBeLessThan(100);
});

proves('cancel.leaves-nothing', 'cancelling during tools keeps finished results and leaves no process', async () => {
  const mark = `drover_cancel_${process.pid}`;
  const stubborn = `exec -a ${mark} bash -c "trap '' TERM; (setsid bash -c 'trap \\"\\" TERM; sleep 300; : ${mark}') & sleep 300; : ${mark}"`;
  const calls = [
    { name: 'shell', args: { command: 'echo quick' } },
    { name: 'shell', args: { command: stubborn } },
  ];
  const { run, server } = await agentOn({ answers: [{ calls }, { text: 'Fine.' }] });
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 500);
  const { events, result } = await run('go', controller.signal);
  expect(result.outcome).toEqual({ status: 'incomplete', failure: { kind: 'aborted', by: 'user' } });
  const tool = result.messages.find((message) => message.role === 'tool');
  expect(tool?.results.map(({ isError }) => isError)).toEqual([false, true]);
  expect(tool?.results[0]?.output).toContain('quick');
  expect(events.at(-1)).toMatchObject({ type: 'session_end', outcome: 'incomplete' });
  expect(processesWith(mark)).toEqual([]);
  expect((await run('go on')).result.outcome).toEqual({ status: 'done' });
  expect(server.rejections).toBe(0);
});

test('cancelling withdraws a permission question', async () => {
  const controller = new AbortController();
  const { run } = await agentOn(
    { answers: [{ calls: [{ name: 'shell', args: { command: 'true' } }] }] },
    {
      judge: async () => ({ effect: 'ask', why: 'a test' }),
      question: (_, signal) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () =>
            resolve({ allowed: false, by: 'cancel', always: false, reason: 'cancelled' }),
          );
          // Waits for the question instead of a time, because a busy machine may show it late.
          setImmediate(() => controller.abort());
        }),
    },
  );
  const { events, result } = await run('go', controller.signal);
  expect(result.outcome.status).toBe('incomplete');
  expect(story(events)).toContain('0 is denied by cancel');
});

function processesWith(mark: string): readonly string[] {
  const list = execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' });
  return list.split('\n').filter((line) => line.includes(mark) && !line.includes('vitest'));
}
