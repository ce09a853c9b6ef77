// Incomplete answers: paused, empty, partly understood, or with unknown tools.

import { defineTool } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { agentOn, APIS } from '../../support/agent.ts';
import { story } from '../../support/story.ts';

const echo = defineTool({
  name: 'echo',
  description: 'Says it back.',
  input: z.object({ text: z.string() }),
  access: 'none',
  subject: ({ text }) => text,
  run: async ({ text }) => text,
});
const calls = (...names: string[]) => ({ calls: names.map((name) => ({ name, args: { text: name } })) });

test('a paused answer is sent back unchanged, with nothing after it', async () => {
  const { run, server } = await agentOn({
    answers: [{ thinking: 'Hm.', text: 'I look it up.', stop: 'pause' }, { text: 'Found.' }],
  });
  const { result } = await run('go');
  expect(result.outcome).toEqual({ status: 'done' });
  type Body = { readonly messages: readonly { readonly role: string; readonly content: readonly object[] }[] };
  const { messages } = (await server.received(2)).body as Body;
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  expect(messages[1]?.content).toEqual([
    { type: 'thinking', thinking: 'Hm.', signature: expect.any(String) },
    { type: 'text', text: 'I look it up.' },
  ]);
  expect(server.rejections).toBe(0);
});

test('an answer that only pauses ends the turn', async () => {
  const { run, server } = await agentOn({ answers: [{ text: 'Wait.', stop: 'pause' }], loop: true });
  expect((await run('go')).result.outcome).toEqual({
    status: 'incomplete',
    failure: { kind: 'answer.paused', limit: 8 },
  });
  expect(server.requests).toHaveLength(9);
});

test.each(APIS)('%s: the events report how much of an answer was not understood', async (api) => {
  const { run } = await agentOn({ answers: [{ text: 'ok', fault: 'unknown-events' }] }, { api });
  expect(story((await run('go')).events).filter((line) => line.startsWith('warning'))).toEqual([
    'warning: one event of the answer not understood, and left out',
  ]);
});

test('unknown tools are counted in a row, and a known one resets the count', async () => {
  const { run } = await agentOn(
    {
      answers: [calls('nope'), calls('nope'), calls('nope', 'echo'), calls('nope'), calls('nope'), { text: 'ok' }],
    },
    { tools: [echo] },
  );
  expect((await run('go')).result.outcome).toEqual({ status: 'done' });
});

test('each kind of retry has its own count, for each answer', async () => {
  const written = { text: '<invoke name="echo">\n<parameter name="text">x</parameter>\n</invoke>' };
  const empty = { text: '' };
  const { run } = await agentOn(
    { answers: [written, written, empty, calls('echo'), empty, { text: 'ok' }] },
    { tools: [echo] },
  );
  expect((await run('go')).result.outcome).toEqual({ status: 'done' });
});

test('a call written as text beside a real call is part of the answer', async () => {
  const text = '<invoke name="echo">\n<parameter name="text">x</parameter>\n</invoke>';
  const { run } = await agentOn({ answers: [{ text, ...calls('echo') }, { text: 'ok' }] }, { tools: [echo] });
  const { events } = await run('go');
  expect(events.filter(({ type }) => type === 'attempt_discarded')).toEqual([]);
  expect(story(events)).toContain('0 ends: echo');
});

test('a call written in thinking does not affect the answer', async () => {
  const thinking = '<invoke name="echo">\n<parameter name="text">x</parameter>\n</invoke>';
  const { run } = await agentOn({ answers: [{ thinking, text: 'Well.' }] }, { tools: [echo] });
  const { events, result } = await run('go');
  expect(events.filter(({ type }) => type === 'attempt_discarded')).toEqual([]);
  expect(result.outcome).toEqual({ status: 'done' });
});

test('a reminder goes into the next request only', async () => {
  const { run, server } = await agentOn({ answers: [{ text: '' }, calls('echo'), { text: 'ok' }] }, { tools: [echo] });
  await run('go');
  expect(server.requests.map(({ rawBody }) => rawBody.includes('Your last answer was empty'))).toEqual([
    false,
    true,
    false,
  ]);
});
