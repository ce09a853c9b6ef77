// Compaction of overlong conversations, by drover's count or by the provider's error.

import { DroverError } from '@drover/core/errors';
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
// Each message is too short to be shortened by itself.
const smallFloods = (count: number) => floods(count, 1_900);
const SUMMARY = { when: { system: 'condense the history' }, text: 'Much was flooded.' };

test('compaction is checked before every request, and the task stays', async () => {
  const { run, session, server } = await agentOn(
    { answers: [SUMMARY, ...smallFloods(12), { text: 'Done.' }] },
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

test('old results are shortened first, without a summary request', async () => {
  const { run, session, server } = await agentOn(
    { answers: [...floods(6, 12_000), { text: 'Done.' }] },
    { tools: [flood], contextTokens: 24_000 },
  );
  const { events, result } = await run('go');
  expect(result.outcome).toEqual({ status: 'done' });
  expect(story(events)).toContain('has shortened it');
  expect(server.requests).toHaveLength(7);
  const sizes = session.conversation.messages.flatMap((message) =>
    message.role === 'tool' ? message.results.map(({ output }) => output.length) : [],
  );
  expect(sizes.map((size) => (size > 2_000 ? 'whole' : 'short'))).toEqual([
    ...Array.from({ length: 5 }, () => 'short'),
    'whole',
  ]);
  expect(JSON.stringify(session.conversation.messages[2])).toContain('characters left out to save room');
});

test('results of one step that exceed the window are shortened too', async () => {
  const step = { calls: Array.from({ length: 12 }, () => ({ name: 'flood', args: { chars: 20_000 } })) };
  const { run, server } = await agentOn(
    { answers: [SUMMARY, step, step, { text: 'Done.' }], contextTokens: 10_000 },
    { tools: [flood], contextTokens: 10_000 },
  );
  const { result } = await run('go');
  expect([result.outcome, server.rejections]).toEqual([{ status: 'done' }, 0]);
});

test('the user’s newest message stays unchanged next to the task', async () => {
  const { run, session } = await agentOn(
    { answers: [SUMMARY, { text: 'First.' }, ...smallFloods(12), { text: 'Done.' }] },
    { tools: [flood], contextTokens: 6_000 },
  );
  await run('the very task');
  await run('the very request');
  const texts = session.conversation.messages.flatMap((message) =>
    message.role === 'user' ? message.content.map((part) => (part.type === 'text' ? part.text : '')) : [],
  );
  expect(texts.map((text) => text.split('\n')[0])).toEqual([
    'the very task',
    'the very request',
    '[What happened before, in short. This is background, not a request.]',
  ]);
});

test.each([2_000, 8_192, 64_000])('a prompt leaves room for an answer of %i tokens', async (outputTokensMax) => {
  const { run, server } = await agentOn(
    { answers: [SUMMARY, ...floods(9, 12_000), { text: 'Done.' }] },
    { tools: [flood], contextTokens: 20_000, outputTokensMax },
  );
  const { result } = await run('go');
  expect(result.outcome).toEqual({ status: 'done' });
  const asked = server.requests.map(({ body }) => (body as { readonly max_tokens: number }).max_tokens);
  // Servers count prompt and answer together.
  const sums = result.messages
    .filter((message) => message.role === 'assistant')
    .map(({ usage }, at) => usage.input + usage.cacheRead + usage.cacheWrite + (asked[at] ?? 0));
  expect(Math.max(...sums)).toBeLessThanOrEqual(20_000 + 500);
  expect(Math.min(...asked)).toBeGreaterThanOrEqual(2_000);
});

test('a task that is too long by itself ends the turn', async () => {
  const { run, server } = await agentOn(
    { answers: [SUMMARY, { text: 'Done.' }], contextTokens: 2_500 },
    { tools: [flood] },
  );
  const { result } = await run('go '.repeat(4_000));
  expect(result.outcome).toMatchObject({ status: 'error', failure: { kind: 'context.overflow' } });
  expect(server.requests).toHaveLength(1);
});

test('a provider that finds every prompt too long is retried after three compactions', async () => {
  const tooLong = { fault: 'status' as const, status: 400, message: 'prompt is too long: 9 tokens > 8 maximum' };
  const { run, server } = await agentOn(
    { answers: [SUMMARY, ...floods(9, 1_900)], otherwise: { fault: tooLong } },
    { tools: [flood] },
  );
  const { events, result } = await run('go');
  expect(result.outcome).toMatchObject({ status: 'incomplete', failure: { kind: 'context.overflow' } });
  const compactions = events.filter((event) => event.type === 'compaction_end' && event.ok).length;
  expect(compactions).toBeGreaterThan(1);
  expect(compactions).toBeLessThanOrEqual(3);
  expect(server.requests.filter(({ status }) => status !== 200)).toHaveLength(1 + compactions);
});

test('compaction repeats as long as answers come in between', async () => {
  const { run } = await agentOn(
    { answers: [SUMMARY, ...floods(16, 4_000), { text: 'Done.' }] },
    { tools: [flood], contextTokens: 6_000 },
  );
  const { events, result } = await run('go');
  expect(result.outcome).toEqual({ status: 'done' });
  expect(story(events).filter((line) => line === 'has shortened it').length).toBeGreaterThan(4);
});

test('without answers in between compaction stops after three times', async () => {
  const written = { text: '<invoke name="flood">\n<parameter name="chars">1</parameter>\n</invoke>' };
  const { run } = await agentOn(
    { answers: [{ ...SUMMARY, text: ' ' }, ...smallFloods(12), written, written, { text: '' }, { text: 'Done.' }] },
    { tools: [flood], contextTokens: 6_000 },
  );
  const told = story((await run('go')).events);
  const sinceTheLastResult = told.slice(told.lastIndexOf('results flood ok'));
  expect(sinceTheLastResult.filter((line) => line === 'could not shorten it')).toHaveLength(3);
  expect(told.at(-1)).toBe('session ends: done');
});

test('a summary request holds the transcript only, is not shown, and is charged', async () => {
  const { run, session, server } = await agentOn(
    { answers: [{ ...SUMMARY, usage: { input: 100_000 } }, ...smallFloods(12), { text: 'Done.' }] },
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

test('an empty summary is a failure and leaves the history as it was', async () => {
  const { run, session } = await agentOn(
    { answers: [{ ...SUMMARY, text: ' ' }, ...smallFloods(12), { text: 'Done.' }] },
    { tools: [flood], contextTokens: 6_000 },
  );
  const { events, result } = await run('go');
  expect(story(events)).toContain('could not shorten it');
  expect(result.outcome).toEqual({ status: 'done' });
  expect(session.conversation.messages).toHaveLength(26);
});

test('a tokens-per-minute limit is waited out, not compacted', async () => {
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

test('a requested compaction makes the conversation as short as possible', async () => {
  const { run, session, server } = await agentOn(
    { answers: [SUMMARY, ...floods(3, 400), { text: 'Done.' }] },
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

test('a summary in several parts becomes one text', async () => {
  const parts = [{ text: 'Much was flo' }, { text: 'oded.' }];
  const { run, session } = await agentOn(
    { answers: [{ when: SUMMARY.when, parts }, ...floods(3, 400), { text: 'Done.' }] },
    { tools: [flood] },
  );
  await run('the very task');
  expect(await session.compact(new AbortController().signal).result()).toBe(true);
  expect(JSON.stringify(session.conversation.messages)).toContain('Much was flooded.');
});

test.each([
  ['the shortest summary', 40, 'Much was flooded.', 0],
  ['this summary', 400, 'long '.repeat(2_000), 1],
])('a requested compaction does nothing where %s would be longer', async (_, chars, text, asked) => {
  const { run, session, server } = await agentOn(
    { answers: [{ ...SUMMARY, text }, ...floods(2, chars), { text: 'Done.' }] },
    { tools: [flood] },
  );
  await run('the very task');
  const before = session.conversation.messages;
  const requests = server.requests.length;
  const wish = session.compact(new AbortController().signal);
  const events = [];
  for await (const event of wish) events.push(event);
  expect([await wish.result(), session.conversation.messages, server.requests.length - requests]).toEqual([
    false,
    before,
    asked,
  ]);
  expect(events.at(-1)).toMatchObject({
    type: 'compaction_end',
    ok: false,
    failure: { kind: 'compaction.failed', message: 'a summary would be longer than what it replaces' },
  });
});

test('an interrupted or refused compaction leaves conversation and session intact', async () => {
  const { run, session } = await agentOn(
    { answers: [{ ...SUMMARY, delayMs: 60_000 }, ...floods(3, 400), { text: 'Done.' }, { text: 'Still here.' }] },
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
