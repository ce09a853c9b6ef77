// Sessions: several turns, remote tools that answer later, limits that hold over a turn.

import type { Event } from '@drover/protocol/events';
import { type Tool, defineTool } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { agentOn } from '../../support/agent.ts';
import { story } from '../../support/story.ts';

const local = defineTool({
  name: 'local',
  description: 'Runs here.',
  input: z.object({ n: z.number() }),
  access: 'none',
  subject: ({ n }) => `${n}`,
  run: async ({ n }) => `local ${n}`,
});
const { execute: _, ...declared } = local;
const remote: Tool = { ...declared, name: 'remote', remote: true };

test('a second turn continues the conversation and reports only its own messages', async () => {
  const { run, server } = await agentOn({ answers: [{ text: 'One.' }, { text: 'Two.' }] });
  await run('first');
  const { result, events } = await run('second');
  expect(result.messages).toHaveLength(2);
  expect(events.map(({ turn }) => turn)).toEqual(events.map(() => 2));
  expect((server.requests[1]?.body as { messages: object[] } | undefined)?.messages).toHaveLength(3);
});

test('local calls run, remote ones are handed out, and the turn waits for all', async () => {
  const calls = [
    { name: 'remote', args: { n: 1 } },
    { name: 'local', args: { n: 2 } },
    { name: 'remote', args: { n: 3 } },
  ];
  const { run, session, server } = await agentOn(
    { answers: [{ calls }, { text: 'All three.' }] },
    { tools: [local, remote] },
  );

  const first = await run('go');
  expect(story(first.events).slice(2)).toEqual([
    'model calls remote, calls local, calls remote (tool_calls)',
    '1 starts local {"n":2}',
    '1 ends: local 2',
    'waits for remote, remote',
    'session ends: suspended',
  ]);
  const [one, three] = first.result.pending;
  expect([one?.args, three?.args]).toEqual([{ n: 1 }, { n: 3 }]);

  const second = await run({ results: [{ callId: three?.callId ?? '', output: 'remote 3' }] });
  expect([second.result.outcome.status, session.pending]).toEqual(['suspended', [one]]);

  const third = await run({ results: [{ callId: one?.callId ?? '', output: 'remote 1' }] });
  expect(third.result.outcome).toEqual({ status: 'done' });
  const tool = third.result.messages.find((message) => message.role === 'tool');
  expect(tool?.results.map(({ output }) => output)).toEqual(['remote 1', 'local 2', 'remote 3']);
  expect([server.requests.length, server.rejections]).toEqual([2, 0]);
});

test('a call in the wrong session state is refused and changes nothing', async () => {
  const { run, session } = await agentOn(
    { answers: [{ calls: [{ name: 'remote', args: { n: 1 } }] }, { text: 'ok' }] },
    { tools: [remote] },
  );
  await expect(run({ results: [] })).rejects.toThrow('waits for no results');
  const running = run('go');
  await expect(run('again')).rejects.toThrow('is busy');
  const { result } = await running;
  await expect(run('a message meanwhile')).rejects.toThrow('waits for the results of 1 remote calls');
  await expect(run({ results: [{ callId: 'call_x', output: '' }] })).rejects.toThrow('waits for no call call_x');
  expect(session.pending).toEqual(result.pending);
  const done = await run({ results: result.pending.map(({ callId }) => ({ callId, output: 'x' })) });
  expect(done.result.outcome).toEqual({ status: 'done' });
});

test('the result settles even if no reader takes the events', async () => {
  const { session } = await agentOn({ answers: [{ text: 'Nobody hears.' }] });
  expect((await session.execute({ content: 'go' }, new AbortController().signal).result()).outcome).toEqual({
    status: 'done',
  });
});

test('usage and cost are reported per execution, with every attempt', async () => {
  const usage = { input: 1_000, output: 100, cacheRead: 0, cacheWrite: 0 };
  const { run } = await agentOn(
    {
      answers: [
        { text: 'a', usage },
        { text: 'b', usage },
      ],
      faults: [{ at: 2, fault: 'cut', after: 1 }],
    },
    { price: { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 } },
  );
  const first = await run('one');
  expect(first.result.usage).toEqual(usage);
  expect(first.result.cost).toBeCloseTo(0.002);
  const second = await run('two');
  expect(second.result.usage.input).toBeGreaterThan(1_000);
  expect(second.result.cost).toBeGreaterThan(0.002);
});

test('every counter of every answer is in the total', async () => {
  const usage = { input: 1, output: 20, cacheRead: 300, cacheWrite: 4_000 };
  const { run } = await agentOn(
    {
      answers: [
        { calls: [{ name: 'local', args: { n: 1 } }], usage },
        { text: 'ok', usage },
      ],
    },
    { tools: [local] },
  );
  const { events, result } = await run('go');
  const total = { input: 2, output: 40, cacheRead: 600, cacheWrite: 8_000 };
  expect(result.usage).toEqual(total);
  expect(events.findLast((event) => event.type === 'usage')).toMatchObject({ usage, total });
});

test('an attempt without reported usage is estimated from its text', async () => {
  const { run } = await agentOn(
    {
      answers: [{ text: 'x'.repeat(400), usage: { input: 7, output: 5 } }],
      faults: [{ at: 1, fault: 'cut', after: 20 }],
    },
    { api: 'openai-chat' },
  );
  const { events, result } = await run('go');
  const discarded = events.find((event) => event.type === 'attempt_discarded');
  expect(discarded?.usage).toMatchObject({ output: 80, estimated: true });
  expect(discarded?.usage?.input).toBeGreaterThan(100);
  expect(result.usage).toEqual({
    input: (discarded?.usage?.input ?? 0) + 7,
    output: 85,
    cacheRead: 0,
    cacheWrite: 0,
    estimated: true,
  });
});

test('the default is four characters per token, corrected by reported usage', async () => {
  const usage = { input: 1_000, output: 1, cacheRead: 2_000, cacheWrite: 4_000 };
  const { run, session } = await agentOn(
    {
      answers: [
        { calls: [{ name: 'local', args: { n: 1 } }], usage },
        { text: 'ok', usage },
      ],
    },
    { tools: [local] },
  );
  const definitions = JSON.stringify([local].map(({ name, description, schema }) => ({ name, description, schema })));
  const { events } = await run('go');
  const estimated = Math.ceil((`${session.conversation.system}go`.length + definitions.length) / 4);
  const ratios = events.flatMap((event) => (event.type === 'usage' ? [event.estimateRatio] : []));
  expect(ratios[0]).toBe(Math.round((7_000 / estimated) * 1_000) / 1_000);
  expect(events.find((event) => event.type === 'usage')).toMatchObject({ estimate: estimated, window: 200_000 });
  expect(session.tokens).toEqual({
    estimate: session.conversation.estimate(definitions.length),
    expected: session.conversation.expectedTokens(definitions.length),
    reported: 7_000,
    ratio: ratios[1],
    window: 200_000,
  });
});

test('a changed system prompt takes effect with the next request', async () => {
  const { run, session, server } = await agentOn({ answers: [{ text: 'a' }, { text: 'b' }] });
  await run('one');
  session.conversation.system = 'Speak like a pirate.';
  await run('two');
  expect(server.requests.map(({ rawBody }) => rawBody.includes('pirate'))).toEqual([false, true]);
});

test('a bug ends the turn as an error event before it is thrown', async () => {
  const bug = new TypeError('nobody thought of this');
  const { session } = await agentOn(
    { answers: [{ calls: [{ name: 'local', args: { n: 1 } }] }] },
    { tools: [local], judge: () => Promise.reject(bug) },
  );
  const execution = session.execute({ content: 'go' }, new AbortController().signal);
  const told: Event[] = [];
  for await (const event of execution) told.push(event);
  await expect(execution.result()).rejects.toBe(bug);
  expect(story(told).slice(-2)).toEqual(['error: internal', 'session ends: error']);
});
