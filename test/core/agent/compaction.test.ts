// Conversations that grow too long, by our own count or by the provider's word.

import { DroverError } from '@drover/core/failure';
import { defineTool } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { agentOn, APIS } from '../../support/agent.ts';
import { story } from '../../support/story.ts';

const flood = defineTool({
  name: 'flood',
  description: 'Much text.',
  input: z.object({ chars: z.number() }),
  access: 'none',
  subject: ({ chars }) => `${chars}`,
  run: async ({ chars }) => 'x'.repeat(chars),
});
const floods = (count: number, chars: number) =>
  Array.from({ length: count }, () => ({ calls: [{ name: 'flood', args: { chars } }] }));
const SUMMARY = { when: { system: 'condense the history' }, text: 'Much was flooded.' };

test('it is checked before every request, so also after results, and the task stays', async () => {
  const { run, session, server } = await agentOn(
    { answers: [SUMMARY, ...floods(6, 4_000), { text: 'Done.' }] },
    { tools: [flood], contextTokens: 6_000 },
  );
  const { events, result } = await run('the very task');
  expect(result.outcome).toEqual({ status: 'done' });
  expect(story(events)).toContain('has shortened it');
  expect(session.conversation.messages[0]).toEqual({
    role: 'user',
    content: [{ type: 'text', text: 'the very task' }],
  });
  expect(JSON.stringify(session.conversation.messages[1])).toContain(
    'This is background, not a request.]\\n\\nMuch was flooded.',
  );
  expect(server.rejections).toBe(0);
});

test.each(APIS)('%s: "context too long" leads to one compaction and one retry', async (api) => {
  const { run, server } = await agentOn(
    { answers: [SUMMARY, ...floods(9, 4_000), { text: 'Done.' }], contextTokens: 7_500 },
    { api, tools: [flood] },
  );
  const { events, result } = await run('go');
  expect(result.outcome).toEqual({ status: 'done' });
  expect(story(events).filter((line) => line.includes('shorten'))).toEqual([
    'shortens the conversation (overflow)',
    'has shortened it',
  ]);
  expect(events.filter(({ type }) => type === 'retry')).toEqual([]);
  expect(server.requests.filter(({ status }) => status !== 200)).toHaveLength(1);
});

test('a conversation that stays too long ends the turn with what was done', async () => {
  const { run, server } = await agentOn(
    { answers: [SUMMARY, ...floods(3, 4_000), { text: 'Done.' }], contextTokens: 2_500 },
    { tools: [flood] },
  );
  const { result } = await run('go');
  expect(result.outcome).toMatchObject({ status: 'incomplete', failure: { kind: 'context.overflow' } });
  expect(server.requests.length).toBeLessThan(12);
});

test('a provider that finds it too long again after one compaction is not asked a third time', async () => {
  const tooLong = { fault: 'status' as const, status: 400, message: 'prompt is too long: 9 tokens > 8 maximum' };
  const { run, server } = await agentOn(
    { answers: [SUMMARY, ...floods(9, 400)], otherwise: { fault: tooLong } },
    { tools: [flood] },
  );
  const { events, result } = await run('go');
  expect(result.outcome).toMatchObject({ status: 'incomplete', failure: { kind: 'context.overflow' } });
  expect(events.filter(({ type }) => type === 'compaction_start')).toHaveLength(1);
  expect(server.requests).toHaveLength(9 + 1 + 1 + 1);
});

test('it is shortened again and again, as long as answers come in between', async () => {
  const { run } = await agentOn(
    { answers: [SUMMARY, ...floods(16, 4_000), { text: 'Done.' }] },
    { tools: [flood], contextTokens: 6_000 },
  );
  const { events, result } = await run('go');
  expect(result.outcome).toEqual({ status: 'done' });
  expect(story(events).filter((line) => line === 'has shortened it').length).toBeGreaterThan(4);
});

test('where no answer comes in between, it is tried three times in a row and then left', async () => {
  const written = { text: '<invoke name="flood">\n<parameter name="chars">1</parameter>\n</invoke>' };
  const { run } = await agentOn(
    { answers: [{ ...SUMMARY, text: ' ' }, ...floods(6, 4_000), written, written, { text: '' }, { text: 'Done.' }] },
    { tools: [flood], contextTokens: 6_000 },
  );
  const told = story((await run('go')).events);
  const sinceTheLastResult = told.slice(told.lastIndexOf('results flood ok'));
  expect(sinceTheLastResult.filter((line) => line === 'could not shorten it')).toHaveLength(3);
  expect(told.at(-1)).toBe('session ends: done');
});

test('a summary is asked for with the transcript alone, is no message, is not shown, and costs', async () => {
  const { run, session, server } = await agentOn(
    { answers: [{ ...SUMMARY, usage: { input: 100_000 } }, ...floods(6, 4_000), { text: 'Done.' }] },
    { tools: [flood], contextTokens: 6_000 },
  );
  const { events, result } = await run('the very task');
  const asked = server.requests.filter(({ rawBody }) => rawBody.includes('condense the history'));
  expect(asked.length).toBeGreaterThan(0);
  for (const { body } of asked) {
    const { messages, tools } = body as {
      messages: readonly { content: readonly { text: string }[] }[];
      tools?: object;
    };
    expect([messages.length, tools]).toEqual([1, undefined]);
    expect(messages[0]?.content[0]?.text).toMatch(/^USER: the very task\n\n/);
  }
  const shown = events.filter(({ type }) => type !== 'compaction_end');
  expect(JSON.stringify(shown)).not.toContain('Much was');
  expect(JSON.stringify(session.conversation.messages.filter(({ role }) => role === 'assistant'))).not.toContain(
    'Much was flooded.',
  );
  expect(result.usage.input).toBeGreaterThanOrEqual(100_000 * asked.length);
});

test('an empty summary is a failure and leaves history as it was', async () => {
  const { run, session } = await agentOn(
    { answers: [{ ...SUMMARY, text: ' ' }, ...floods(6, 4_000), { text: 'Done.' }] },
    { tools: [flood], contextTokens: 6_000 },
  );
  const { events, result } = await run('go');
  expect(story(events)).toContain('could not shorten it');
  expect(result.outcome).toEqual({ status: 'done' });
  expect(session.conversation.messages).toHaveLength(14);
});

test('tokens per minute is not the context: it is waited for', async () => {
  const fault = {
    fault: 'status' as const,
    status: 429,
    message: 'Rate limit reached: tokens per minute',
    headers: { 'retry-after-ms': '20' },
  };
  const { run } = await agentOn({ answers: [{ text: 'ok' }], faults: [{ at: 1, ...fault }] });
  const { events } = await run('go');
  expect(story(events)).toEqual([
    'session starts',
    'user says go',
    'tries again after attempt 1: provider.throttled',
    'model says ok (stop)',
    'done',
    'session ends: done',
  ]);
});

test('somebody may wish for a shorter one between two turns: it is as short as it gets, and told as such', async () => {
  const { run, session, server } = await agentOn(
    { answers: [SUMMARY, ...floods(3, 40), { text: 'Done.' }] },
    { tools: [flood] },
  );
  await run('the very task');
  const wish = session.compact(new AbortController().signal);
  const events = [];
  for await (const event of wish) events.push(event);
  expect([await wish.result(), session.status]).toEqual([true, 'idle']);
  expect(story(events)).toEqual(['shortens the conversation (wish)', 'has shortened it']);
  expect(session.conversation.messages.map(({ role }) => role)).toEqual([
    'user',
    'user',
    'assistant',
    'tool',
    'assistant',
  ]);
  const requests = server.requests.length;
  const again = session.compact(new AbortController().signal);
  expect([await again.result(), server.requests.length]).toEqual([false, requests]);
});

test('a wish that is interrupted or refused leaves the conversation as it was, and the session ready', async () => {
  const { run, session } = await agentOn(
    { answers: [{ ...SUMMARY, delayMs: 60_000 }, ...floods(3, 40), { text: 'Done.' }, { text: 'Still here.' }] },
    { tools: [flood] },
  );
  await run('the very task');
  const before = session.conversation.messages;
  const stop = new AbortController();
  const wish = session.compact(stop.signal);
  expect(() => session.compact(stop.signal)).toThrow('is busy');
  stop.abort(new DroverError({ kind: 'aborted', by: 'user' }));
  expect([await wish.result(), session.conversation.messages]).toEqual([false, before]);
  expect((await run('and?')).result.outcome).toEqual({ status: 'done' });
});
