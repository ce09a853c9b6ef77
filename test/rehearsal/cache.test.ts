// Prompt caching as usage reports it.

import { expect, test } from 'vitest';
import type { Json, JsonObject } from '@drover/rehearsal/json';
import { at, post, requestFor, send, stage, type Stage } from './clients.ts';

const words = (tokens: number, letter = 'w'): string => letter.repeat(tokens * 4);
const text = (tokens: number, letter?: string): JsonObject => ({ type: 'text', text: words(tokens, letter) });
const mark = (block: JsonObject): JsonObject => ({ ...block, cache_control: { type: 'ephemeral' } });
const user = (...content: readonly JsonObject[]): JsonObject => ({ role: 'user', content });
const assistant = (...content: readonly JsonObject[]): JsonObject => ({ role: 'assistant', content });

/** Tokens read from the cache, written to it, and neither. */
async function counted(
  { server }: Stage,
  messages: readonly JsonObject[],
  more: JsonObject = {},
): Promise<readonly unknown[]> {
  const { json } = await post(server, 'anthropic', requestFor('anthropic', { messages, ...more }));
  return ['cache_read_input_tokens', 'cache_creation_input_tokens', 'input_tokens'].map((name) =>
    at(json, `usage.${name}`),
  );
}

const open = () => stage({ otherwise: { text: 'ok' } });

test('Anthropic: nothing is cached without a mark', async () => {
  const on = await open();
  expect([await counted(on, [user(text(2000))]), await counted(on, [user(text(2000))])]).toEqual([
    [0, 0, 2000],
    [0, 0, 2000],
  ]);
});

test('Anthropic: a marked prefix is written once and read afterwards', async () => {
  const on = await open();
  const messages = [user(mark(text(2000)), text(10, 'b'))];
  expect([await counted(on, messages), await counted(on, messages)]).toEqual([
    [0, 2000, 10],
    [2000, 0, 10],
  ]);
});

test('Anthropic: a growing conversation reads what the previous step wrote', async () => {
  const on = await open();
  const system = [mark(text(1500, 's'))];
  const first = [user(mark(text(100, 'a')))];
  const second = [user(text(100, 'a')), assistant(text(50, 'b')), user(mark(text(30, 'c')))];
  expect([await counted(on, first, { system }), await counted(on, second, { system })]).toEqual([
    [0, 1600, 0],
    [1600, 80, 0],
  ]);
});

test('Anthropic: workers share their common prefix', async () => {
  const on = await open();
  const tools = [{ name: 'read', description: words(200), input_schema: { type: 'object' } }];
  const system = [mark(text(1500, 's'))];
  await counted(on, [user(mark(text(40, 'a')))], { system, tools });
  expect(await counted(on, [user(mark(text(60, 'b')))], { system, tools })).toEqual([1701, 60, 0]);
});

test('Anthropic: another model, other tools or another system prompt share nothing', async () => {
  const on = await open();
  const messages = [user(mark(text(2000)))];
  await counted(on, messages);
  expect(await counted(on, messages, { model: 'other' })).toEqual([0, 2000, 0]);
  expect(await counted(on, messages, { system: 'be good' })).toEqual([0, 2002, 0]);
});

test('Anthropic: another tool choice misses the messages but hits the system prompt', async () => {
  const on = await open();
  const system = [mark(text(1500, 's'))];
  await counted(on, [user(mark(text(100)))], { system });
  expect(await counted(on, [user(mark(text(100)))], { system, tool_choice: { type: 'none' } })).toEqual([1500, 100, 0]);
});

test('Anthropic: a prefix below the minimum is not cached', async () => {
  const on = await open();
  const messages = [user(mark(text(1023)))];
  expect([await counted(on, messages), await counted(on, messages)]).toEqual([
    [0, 0, 1023],
    [0, 0, 1023],
  ]);
  const low = await stage({ otherwise: { text: 'ok' }, cache: { tokensMin: 10 } });
  expect([await counted(low, messages), await counted(low, messages)]).toEqual([
    [0, 1023, 0],
    [1023, 0, 0],
  ]);
});

test('Anthropic: an entry more than 20 blocks behind a mark is not found', async () => {
  const on = await open();
  const many = (count: number): readonly JsonObject[] =>
    Array.from({ length: count }, (_, index) => text(10, String.fromCharCode(97 + index)));
  await counted(on, [user(mark(text(2000)))]);
  expect(await counted(on, [user(text(2000), ...many(18), mark(text(10, 'z')))])).toEqual([2000, 190, 0]);
  const fresh = await open();
  await counted(fresh, [user(mark(text(2000)))]);
  expect(await counted(fresh, [user(text(2000), ...many(19), mark(text(10, 'z')))])).toEqual([0, 2200, 0]);
});

test('Anthropic: an entry exists once the answer that wrote it has begun', async () => {
  const { server } = await stage({
    answers: [{ text: 'slow', delayMs: 1_000 }],
    otherwise: { text: 'ok' },
    faults: [{ at: 1, fault: 'status', status: 529 }],
  });
  const messages = [user(mark(text(2000)))];
  const body = requestFor('anthropic', { messages });
  const read = async (response: Response): Promise<unknown> =>
    at((await response.json()) as Json, 'usage.cache_read_input_tokens');

  await send(server, 'anthropic', { body });
  const slow = send(server, 'anthropic', { body });
  await server.received(2);
  expect(await read(await send(server, 'anthropic', { body }))).toBe(0);
  expect(await read(await slow)).toBe(0);
  expect(await read(await send(server, 'anthropic', { body }))).toBe(2000);
});

test('Anthropic: the counts are in the start event and in the last one', async () => {
  const { server, anthropic } = await open();
  const messages = [
    {
      role: 'user' as const,
      content: [{ type: 'text' as const, text: words(2000), cache_control: { type: 'ephemeral' as const } }],
    },
  ];
  await anthropic.messages.create({ model: 'm', max_tokens: 9, messages });
  const events = [];
  for await (const event of await anthropic.messages.create({ model: 'm', max_tokens: 9, messages, stream: true }))
    events.push(event);
  const usages = events.flatMap((event) =>
    event.type === 'message_start' ? [event.message.usage] : event.type === 'message_delta' ? [event.usage] : [],
  );
  expect(usages).toMatchObject([
    { cache_read_input_tokens: 2000, input_tokens: 0 },
    { cache_read_input_tokens: 2000, input_tokens: 0, output_tokens: 1 },
  ]);
  expect(server.requests).toHaveLength(2);
});

test.each([
  ['openai', 'usage.input_tokens_details.cached_tokens', 'usage.input_tokens'],
  ['openai-chat', 'usage.prompt_tokens_details.cached_tokens', 'usage.prompt_tokens'],
] as const)('%s: the common prefix is read in steps of 128 tokens, from 1024 on', async (api, cached, total) => {
  const { server } = await open();
  const ask = async (content: string, more: JsonObject = {}) => {
    const { json } = await post(server, api, requestFor(api, more, content));
    return [at(json, cached), at(json, total)];
  };
  expect(await ask(words(1500))).toEqual([0, 1500]);
  expect(await ask(words(1500))).toEqual([1408, 1500]);
  expect(await ask(words(1200) + words(500, 'x'))).toEqual([1152, 1700]);
  expect(await ask(words(1000) + words(500, 'y'))).toEqual([0, 1500]);
  expect(await ask(words(1500), { prompt_cache_key: 'other' })).toEqual([0, 1500]);
});

test('caching can be switched off', async () => {
  const on = await stage({ otherwise: { text: 'ok' }, cache: { enabled: false } });
  const messages = [user(mark(text(2000)))];
  expect([await counted(on, messages), await counted(on, messages)]).toEqual([
    [0, 0, 2000],
    [0, 0, 2000],
  ]);
});
