// The calls of an answer: concurrency, ids, and queued calls at a cancel.

import { setTimeout as sleep } from 'node:timers/promises';
import { defineTool, type Tool } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { agentOn } from '../../support/agent.ts';
import { story } from '../../support/story.ts';

type Crowd = { now: number; most: number; begun: number; readonly onBegin?: () => void };

/** A tool that reports how many of its calls ran concurrently. */
function crowded(name: string, crowd: Crowd, alone?: true): Tool {
  return defineTool({
    name,
    description: 'Takes a while.',
    input: z.object({ ms: z.number() }),
    access: 'none',
    subject: () => '',
    ...(alone && { alone }),
    async run({ ms }) {
      crowd.begun += 1;
      crowd.now += 1;
      crowd.most = Math.max(crowd.most, crowd.now);
      crowd.onBegin?.();
      await sleep(ms);
      crowd.now -= 1;
      return 'done';
    },
  });
}

const nobody = (): Crowd => ({ now: 0, most: 0, begun: 0 });
const times = (count: number, name: string, ms: number) =>
  Array.from({ length: count }, () => ({ name, args: { ms } }));

test('at most eight calls run at a time, and all of them run', async () => {
  const crowd = nobody();
  const { run } = await agentOn(
    { answers: [{ calls: times(30, 'slow', 20) }, { text: 'ok' }] },
    { tools: [crowded('slow', crowd)] },
  );
  await run('go');
  expect(crowd).toEqual({ now: 0, most: 8, begun: 30 });
});

test('an exclusive tool runs beside no other', async () => {
  const crowd = nobody();
  const calls = [...times(2, 'slow', 20), ...times(2, 'alone', 20), ...times(2, 'slow', 20)];
  const { run } = await agentOn(
    { answers: [{ calls }, { text: 'ok' }] },
    { tools: [crowded('slow', crowd), crowded('alone', crowd, true)] },
  );
  const { events } = await run('go');
  const running = new Set<string>();
  for (const event of events) {
    if (event.type === 'tool_execution_start') running.add(`${event.name} ${event.callIndex}`);
    if (event.type === 'tool_execution_end') running.delete(`${event.name} ${event.callIndex}`);
    if ([...running].some((each) => each.startsWith('alone'))) expect(running.size).toBe(1);
  }
  expect(crowd).toEqual({ now: 0, most: 2, begun: 6 });
});

test('no two calls share a callId, whatever ids the server gives them', async () => {
  const call = { name: 'slow', args: { ms: 0 }, id: 'toolu_same' };
  const { run } = await agentOn(
    { answers: [{ calls: [call] }, { calls: [call] }, { text: 'ok' }], strict: false },
    { tools: [crowded('slow', nobody())] },
  );
  const { events } = await run('go');
  const starts = events.filter((event) => event.type === 'tool_execution_start');
  expect(starts.map(({ toolUseId, index }) => [toolUseId, index])).toEqual([
    ['toolu_same', 0],
    ['toolu_same', 0],
  ]);
  expect(new Set(starts.map(({ callId }) => callId)).size).toBe(2);
});

test('a result has a one-line summary for views and goes to the model whole', async () => {
  const talks = defineTool({
    name: 'talks',
    description: 'Says much.',
    input: z.object({}),
    access: 'none',
    subject: () => '',
    run: async () => `first\n${'second '.repeat(50)}`,
  });
  const { run } = await agentOn({ answers: [{ calls: [{ name: 'talks' }] }, { text: 'ok' }] }, { tools: [talks] });
  const end = (await run('go')).events.find((event) => event.type === 'tool_execution_end');
  expect(end?.outputSummary).toMatch(/^first second second .*…$/);
  expect(Array.from(end?.outputSummary ?? '').length).toBeLessThanOrEqual(80);
  expect(end?.output).toBe(`first\n${'second '.repeat(50)}`);
});

test('a call that is queued when the user cancels is not started', async () => {
  const controller = new AbortController();
  const first: Crowd = { ...nobody(), onBegin: () => controller.abort() };
  const second = nobody();
  const calls = [...times(1, 'first', 20), ...times(1, 'second', 0)];
  const { run, server } = await agentOn(
    { answers: [{ calls }, { text: 'ok' }] },
    { tools: [crowded('first', first, true), crowded('second', second)] },
  );
  const { events, result } = await run('go', controller.signal);
  expect(result.outcome).toEqual({ status: 'incomplete', failure: { kind: 'aborted', by: 'user' } });
  expect([first.begun, second.begun]).toEqual([1, 0]);
  expect(story(events).slice(3, -2)).toEqual([
    '0 starts first {"ms":20}',
    '0 ends: done',
    '1 fails: Interrupted before it was started.',
    'results first ok, second failed',
  ]);
  expect((await run('go on')).result.outcome).toEqual({ status: 'done' });
  expect(server.rejections).toBe(0);
});

test('cancelling during a remote and a local call ends the turn without waiting', async () => {
  const controller = new AbortController();
  const local: Crowd = { ...nobody(), onBegin: () => controller.abort() };
  const { execute: _, ...declared } = crowded('remote', nobody());
  const remote: Tool = { ...declared, remote: true };
  const { run, session, server } = await agentOn(
    { answers: [{ calls: [...times(1, 'remote', 0), ...times(1, 'local', 20)] }, { text: 'ok' }] },
    { tools: [remote, crowded('local', local)] },
  );
  const { events, result } = await run('go', controller.signal);
  expect(story(events).slice(-3)).toEqual([
    'results remote failed, local ok',
    'incomplete: aborted',
    'session ends: incomplete',
  ]);
  expect([result.pending, session.pending]).toEqual([[], []]);
  expect((await run('go on')).result.outcome).toEqual({ status: 'done' });
  expect(server.rejections).toBe(0);
});

test('a call with no terminal to ask on is refused, with the reason in its result', async () => {
  const crowd = nobody();
  const reason = 'it runs something, and nobody is there to ask';
  const { run, server } = await agentOn(
    { answers: [{ calls: times(1, 'slow', 0) }, { text: 'ok' }] },
    {
      tools: [crowded('slow', crowd)],
      judge: async () => ({ effect: 'ask', why: 'it runs something' }),
      question: async () => ({ allowed: false, by: 'nobody', always: false, reason }),
    },
  );
  const { result } = await run('go');
  const results = result.messages.flatMap((message) => (message.role === 'tool' ? message.results : []));
  expect(results.map(({ output, isError }) => [output, isError])).toEqual([[`Not allowed: ${reason}`, true]]);
  expect(server.requests[1]?.rawBody).toContain(reason);
  expect(result.denials).toEqual([{ name: 'slow', subject: '', why: reason }]);
  expect(crowd.begun).toBe(0);
});
