// Requests that the Anthropic Messages API refuses, with its error bodies.

import { expect, test } from 'vitest';
import type { Json, JsonObject } from '@drover/rehearsal/json';
import { at, post, requestFor, send, stage, textAt } from '../clients.ts';

const user = (content: Json = 'go'): JsonObject => ({ role: 'user', content });
const assistant = (content: Json = 'well'): JsonObject => ({ role: 'assistant', content });
const text = (said: string): JsonObject => ({ type: 'text', text: said });
const use = (id: string): JsonObject => ({ type: 'tool_use', id, name: 'read', input: {} });
const result = (id: string, content: Json = 'ok'): JsonObject => ({ type: 'tool_result', tool_use_id: id, content });
const image = (data: string): JsonObject => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data },
});
const marked = { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } };

/** The header of a PNG, from which a server reads its size. */
function png(width: number, height: number): string {
  const bytes = Buffer.alloc(40);
  bytes.writeUInt32BE(0x89504e47, 0);
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes.toString('base64');
}

/** A JPEG up to its frame header, after a table of the kind FFC4. */
function jpeg(width: number, height: number): string {
  const bytes = Buffer.alloc(40);
  bytes.writeUInt16BE(0xffd8, 0);
  bytes.writeUInt16BE(0xffc4, 2);
  bytes.writeUInt16BE(10, 4);
  bytes.writeUInt16BE(0xffc0, 14);
  bytes.writeUInt16BE(17, 16);
  bytes.writeUInt16BE(height, 19);
  bytes.writeUInt16BE(width, 21);
  return bytes.toString('base64');
}

type Case = [rule: string, messages: readonly Json[], message: string | RegExp, more?: JsonObject];

const refused: readonly Case[] = [
  ['no messages', [], 'messages: at least one message is required'],
  ['a first message from the assistant', [assistant(), user()], 'messages: first message must use the "user" role'],
  [
    'a role that does not exist',
    [{ role: 'tool', content: 'x' }],
    'messages: Unexpected role "tool". Allowed roles are "user" or "assistant"',
  ],
  ['an extra field in a message', [{ ...user(), id: 'msg_1' }], 'messages.0.id: Extra inputs are not permitted'],
  ['content that is missing', [{ role: 'user' }], 'messages.0.content: Field required'],
  ['content of a wrong kind', [user(5)], 'messages.0.content: Input should be a valid list'],
  [
    'a call without a result',
    [user(), assistant([use('a'), use('b')]), user([result('a')])],
    /^messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: b\. Each/,
  ],
  ['a call at the end', [user(), assistant([use('a')])], /^messages\.1: `tool_use` ids were found without/],
  [
    'a result that is not first',
    [user(), assistant([use('a')]), user([text('so'), result('a')])],
    /^messages\.1: `tool_use` ids were found without/,
  ],
  [
    'a result without a call',
    [user([result('a')])],
    /^messages\.0\.content\.0: unexpected `tool_use_id` found in `tool_result` blocks: a\. Each/,
  ],
  [
    'a result two messages late',
    [user(), assistant(), user([text('x'), result('a')])],
    /^messages\.2\.content\.1: unexpected `tool_use_id`/,
  ],
  [
    'two results for a call',
    [user(), assistant([use('a')]), user([result('a'), result('a')])],
    'messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a',
  ],
  [
    'two calls with one id',
    [user(), assistant([use('a')]), user([result('a')]), assistant([text('x'), use('a')]), user([result('a')])],
    'messages.3.content.1: `tool_use` ids must be unique',
  ],
  [
    'a call id outside the alphabet',
    [user(), assistant([use('a.b')]), user([result('a.b')])],
    "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
  ],
  [
    'arguments that are no object',
    [user(), assistant([{ ...use('a'), input: 'x' }]), user([result('a')])],
    'messages.1.content.0.tool_use.input: Input should be a valid dictionary',
  ],
  [
    'a call from the user',
    [user([use('a')])],
    'messages.0.content.0: `tool_use` blocks can only be in `assistant` messages',
  ],
  [
    'a failed result without content',
    [user(), assistant([use('a')]), user([{ ...result('a', ''), is_error: true }])],
    'messages.2.content.0.tool_result: content cannot be empty if `is_error` is true',
  ],
  ['empty text', [user([text('')])], 'messages: text content blocks must be non-empty'],
  ['blank text', [user(' \n')], 'messages: text content blocks must contain non-whitespace text'],
  [
    'empty text in a result',
    [user(), assistant([use('a')]), user([result('a', [text('')])])],
    'messages: text content blocks must be non-empty',
  ],
  ['empty system text', [user()], 'system: text content blocks must be non-empty', { system: [text('')] }],
  [
    'a mark on empty text',
    [user([{ ...text(''), cache_control: { type: 'ephemeral' } }])],
    'cache_control cannot be set for empty text blocks',
  ],
  [
    'an assistant message without content',
    [user(), assistant([]), user()],
    /^messages\.1: all messages must have non-empty content/,
  ],
  [
    'a last message from the assistant',
    [user(), assistant()],
    'This model does not support assistant message prefill. The conversation must end with a user message.',
  ],
  [
    'an unknown block',
    [user(), assistant([{ type: 'mystery' }]), user()],
    /^messages\.1\.content\.0: Input tag 'mystery' found using 'type' does not match any of the expected tags: 'bash_code/,
  ],
  [
    'an extra field in a block',
    [user(), assistant([{ ...use('a'), index: 0 }]), user([result('a')])],
    'messages.1.content.0.tool_use.index: Extra inputs are not permitted',
  ],
  [
    'unsigned thinking',
    [user(), assistant([{ type: 'thinking', thinking: 'hm', signature: '' }]), user()],
    /^messages\.1\.content\.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified/,
  ],
  [
    'redacted thinking of unknown origin',
    [user(), assistant([{ type: 'redacted_thinking', data: 'abc' }]), user()],
    /^messages\.1\.content\.0: `thinking` or `redacted_thinking` blocks in the latest/,
  ],
  [
    'five cache marks',
    [user([marked, marked, marked]), assistant(), user([marked, marked])],
    'A maximum of 4 blocks with cache_control may be provided. Found 5.',
  ],
  [
    'an image of too many pixels',
    [user([image(png(8001, 10))])],
    'messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels',
  ],
  [
    'a JPEG of too many pixels, behind its tables',
    [user([image(jpeg(10, 8001))])],
    /At least one of the image dimensions exceed max allowed size: 8000 pixels$/,
  ],
  [
    'many images of many pixels',
    [user(Array.from({ length: 21 }, () => image(png(10, 2001))))],
    /^messages\.0\.content\.0\.image\.source\.base64\.data: At least one .* for many-image requests: 2000 pixels$/,
  ],
  [
    'an image of too many bytes',
    [user([image(png(10, 10) + 'A'.repeat(5 * 1024 * 1024))])],
    /^messages\.0\.content\.0\.image\.source\.base64: image exceeds 5 MB maximum: \d+ bytes > 5242880 bytes$/,
  ],
  [
    'an image that is none',
    [user([image('AAAA')])],
    'messages.0.content.0.image.source.base64.data: Could not process image',
  ],
  [
    'a thinking budget over the output limit',
    [user()],
    '`max_tokens` must be greater than `thinking.budget_tokens`.',
    { thinking: { type: 'enabled', budget_tokens: 4096 } },
  ],
  [
    'two tools of one name',
    [user()],
    'tools: Tool names must be unique.',
    {
      tools: [
        { name: 'a', input_schema: { type: 'object' } },
        { name: 'a', input_schema: { type: 'object' } },
      ],
    },
  ],
  [
    'a tool name outside the alphabet',
    [user()],
    "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    { tools: [{ name: 'a b', input_schema: { type: 'object' } }] },
  ],
  [
    'a tool without an object schema',
    [user()],
    'tools.0.custom.input_schema.type: Field required',
    { tools: [{ name: 'a', input_schema: {} }] },
  ],
  ['an unknown parameter', [user()], 'top_secret: Extra inputs are not permitted', { top_secret: 1 }],
];

test.each(refused)('%s', async (_, messages, message, more = {}) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const { status, json } = await post(server, 'anthropic', requestFor('anthropic', { messages, ...more }));
  expect({ status, json }).toEqual({
    status: 400,
    json: {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: typeof message === 'string' ? message : expect.stringMatching(message),
      },
      request_id: 'req_1',
    },
  });
  expect(server.rejections).toBe(1);
});

test.each(['max_tokens', 'messages', 'model'])('%s is required', async (field) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const body = Object.fromEntries(Object.entries(requestFor('anthropic')).filter(([key]) => key !== field));
  const { status, json } = await post(server, 'anthropic', body);
  expect([status, at(json, 'error.message')]).toEqual([400, `${field}: Field required`]);
});

test('anthropic-version is required', async () => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const response = await fetch(`${server.url}/v1/messages`, {
    method: 'POST',
    body: JSON.stringify(requestFor('anthropic')),
  });
  expect(response.status).toBe(400);
  expect(at((await response.json()) as Json, 'error.message')).toBe('anthropic-version: header is required');
});

test('a valid conversation is accepted', async () => {
  const { server } = await stage({
    answers: [
      { thinking: 'hm', redactedThinking: 'x', text: 'so', calls: [{ name: 'read' }, { name: 'read' }] },
      { text: 'done' },
    ],
  });
  const first = await post(server, 'anthropic', requestFor('anthropic'));
  const content = at(first.json, 'content') as readonly JsonObject[];
  const ids = content.flatMap((block) => (block['type'] === 'tool_use' ? [textAt(block, 'id')] : []));
  const messages = [
    user(),
    assistant(content),
    user([...ids.map((id) => result(id, '')), text('and hurry'), image(png(100, 100))]),
    user('please'),
  ];
  expect(await post(server, 'anthropic', requestFor('anthropic', { messages }))).toMatchObject({ status: 200 });
  expect(server.rejections).toBe(0);
});

test('changed thinking is refused only in the latest assistant message', async () => {
  const { server } = await stage({ answers: [{ thinking: 'hm', text: 'so' }], otherwise: { text: 'fine' } });
  const { json } = await post(server, 'anthropic', requestFor('anthropic'));
  const [thinking, said] = at(json, 'content') as readonly JsonObject[];
  const changed = { ...thinking, thinking: 'hm!' };
  const ask = async (messages: readonly Json[]) =>
    (await post(server, 'anthropic', requestFor('anthropic', { messages }))).status;
  expect(await ask([user(), assistant([changed, said ?? {}]), user()])).toBe(400);
  expect(await ask([user(), assistant([changed, said ?? {}]), user(), assistant(), user()])).toBe(200);
});

test('a paused answer may come back as the last message', async () => {
  const { server } = await stage({
    answers: [{ thinking: 'hm', text: 'wait', stop: 'pause' }],
    otherwise: { text: 'fine' },
  });
  const { json } = await post(server, 'anthropic', requestFor('anthropic'));
  const ask = async (content: Json) =>
    (await post(server, 'anthropic', requestFor('anthropic', { messages: [user(), assistant(content)] }))).status;
  expect(await ask(at(json, 'content') ?? [])).toBe(200);
  expect(await ask('wait')).toBe(400);
});

test.each([
  ['\\ud83d', 'no low surrogate in string: line 1 column 71 (char 70)'],
  ['\\uDC11', 'no high surrogate in string: line 1 column 71 (char 70)'],
  ['\\ud83d\\ud83d', 'no low surrogate in string: line 1 column 71 (char 70)'],
])('a lone surrogate, as %s, is refused', async (escape, message) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const { status, json } = await post(
    server,
    'anthropic',
    `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"oh ${escape} no"}]}`,
  );
  expect([status, at(json, 'error.message')]).toEqual([400, `The request body is not valid JSON: ${message}`]);
});

test.each(['\\ud83d\\udc11', '\\\\ud83d', '🐑'])('%s is not a lone surrogate', async (escape) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const body = `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"oh ${escape} no"}]}`;
  expect((await post(server, 'anthropic', body)).status).toBe(200);
});

test('a body that is not JSON or not UTF-8 is refused', async () => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  expect(at((await post(server, 'anthropic', '{"model":')).json, 'error.message')).toMatch(
    /^The request body is not valid JSON: unexpected character: line 1 column/,
  );
  const response = await fetch(`${server.url}/v1/messages`, { method: 'POST', body: Buffer.from([0x22, 0xff, 0x22]) });
  expect(at((await response.json()) as Json, 'error.message')).toMatch(
    /^The request body is not valid JSON: str is not valid UTF-8/,
  );
});

test('a body that is too large is refused, as JSON and as HTML', async () => {
  const json = await stage({ answers: [{ text: 'fine' }], bodyBytesMax: 100 });
  expect(await post(json.server, 'anthropic', requestFor('anthropic', {}, 'x'.repeat(100)))).toEqual({
    status: 413,
    json: {
      type: 'error',
      error: { type: 'request_too_large', message: 'Request exceeds the maximum size' },
      request_id: 'req_1',
    },
  });
  const html = await stage({ answers: [{ text: 'fine' }], bodyBytesMax: 100, tooLargeAs: 'html' });
  const response = await send(html.server, 'anthropic', { body: requestFor('anthropic', {}, 'x'.repeat(100)) });
  expect([response.status, response.headers.get('content-type'), (await response.text()).slice(0, 6)]).toEqual([
    413,
    'text/html',
    '<html>',
  ]);
});

test('a wrong key is refused', async () => {
  const { server, anthropic } = await stage({ answers: [{ text: 'fine' }], keys: ['key-for-rehearsal'] });
  const none = await send(server, 'anthropic', { body: requestFor('anthropic') });
  expect([none.status, at((await none.json()) as Json, 'error')]).toEqual([
    401,
    { type: 'authentication_error', message: 'x-api-key header is required' },
  ]);
  const wrong = await send(server, 'anthropic', { body: requestFor('anthropic'), headers: { 'x-api-key': 'other' } });
  expect([wrong.status, at((await wrong.json()) as Json, 'error.message')]).toEqual([401, 'invalid x-api-key']);
  await anthropic.messages.create({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'go' }] });
});

test('content that strict mode refuses is accepted otherwise', async () => {
  const { server } = await stage({ strict: false, answers: [{ text: 'fine' }] });
  expect((await post(server, 'anthropic', { messages: [assistant()] })).status).toBe(200);
});
