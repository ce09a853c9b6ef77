// An embedded agent: figures of a session, costs of answers, and labels of tools.

import type { Shown } from '@drover/core/bus';
import { createSession, execute, type AgentOptions } from '@drover/core/in-process';
import { createSimpleTool } from '@drover/core/tools/tool';
import { remoteTool } from '@drover/core/tools/remote';
import type { Script } from '@drover/rehearsal/script';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { rehearsal, temporaryFolder } from '../support/agent.ts';

const MILLION = 1_000_000;
const dear = { price: { input: 0, output: 10, cacheRead: 0, cacheWrite: 0 } };
const cheap = { price: { input: 0, output: 1, cacheRead: 0, cacheWrite: 0 } };
const long = { text: 'Long.', usage: { output: MILLION } };

const search = createSimpleTool(
  {
    name: 'search_all',
    label: 'Search',
    description: 'Searches.',
    input: z.object({ query: z.string() }),
    access: 'none',
    subject: ({ query }) => query,
  },
  async ({ query }) => ({ output: `nothing of ${query}` }),
);
const ask = remoteTool({
  name: 'ask_user',
  label: 'Ask',
  description: 'Asks.',
  schema: { type: 'object', properties: {} },
});

/** Successive sessions with one id, on a model that continues its script. */
async function sessionsOn(script: Script) {
  const server = await rehearsal(script);
  const home = await temporaryFolder();
  const cwd = await temporaryFolder();
  return (options: Partial<AgentOptions>) => {
    const model = { model: 'anthropic/scripted', baseUrl: server.baseUrlFor('anthropic'), apiKey: 'k' };
    const session = createSession('figures', { tools: [search, ask], cwd }, { ...model, home, ...options });
    onTestFinished(() => session.close());
    return session;
  };
}

async function executed(session: ReturnType<typeof createSession>, content: string): Promise<readonly Shown[]> {
  const events: Shown[] = [];
  for await (const event of execute(session, { role: 'user', content })) events.push(event);
  return events;
}

test('a session reports model, dollars and state, also after a change of model', async () => {
  const open = await sessionsOn({ answers: [long, long] });
  const one = open({ facts: dear });
  expect([one.model, one.totalCost, one.status, one.ending]).toEqual(['anthropic/scripted', 0, 'idle', undefined]);
  await executed(one, 'One');
  expect([one.totalCost, one.status, one.ending]).toEqual([10, 'idle', 'done']);
  await one.close();
  const two = open({ model: 'anthropic/other', facts: cheap });
  await executed(two, 'Two');
  expect([two.model, two.totalCost, two.ending]).toEqual(['anthropic/other', 11, 'done']);
});

test('the end of an answer carries its cost, and other messages carry none', async () => {
  const call = { calls: [{ name: 'search_all', args: { query: 'cats' } }], usage: { output: MILLION / 2 } };
  const open = await sessionsOn({ answers: [call, long] });
  const events = await executed(open({ facts: dear }), 'Go');
  const ends = events.flatMap((event) => (event.type === 'message_end' ? [event] : []));
  expect(ends.map(({ message, cost }) => [message.role, cost])).toEqual([
    ['user', undefined],
    ['assistant', 5],
    ['tool', undefined],
    ['assistant', 10],
  ]);
});

test('a tool’s label replaces its name in views', async () => {
  const call = {
    calls: [
      { name: 'search_all', args: { query: 'cats' } },
      { name: 'ask_user', args: {} },
    ],
  };
  const open = await sessionsOn({ answers: [call] });
  const events = await executed(open({}), 'Go');
  const told = events.flatMap((event) => {
    if (event.type === 'tool_execution_start') return [[event.name, event.summary]];
    return event.type === 'awaiting_tool_execution' ? event.calls.map(({ name, summary }) => [name, summary]) : [];
  });
  expect(told).toEqual([
    ['search_all', 'Search: cats'],
    ['ask_user', 'Ask {}'],
  ]);
});

test('the budget of a stored session holds after it is resumed', async () => {
  const open = await sessionsOn({ answers: [long, long] });
  const budget = { facts: { ...dear, outputTokensMax: MILLION }, budget: { usd: 10.001 } };
  const one = open(budget);
  await executed(one, 'One');
  await one.close();
  const { status, failure } = await execute(open(budget), { role: 'user', content: 'Two' }).result();
  expect([status, failure]).toMatchObject(['error', { kind: 'limit.reached', limit: 'budget' }]);
});
