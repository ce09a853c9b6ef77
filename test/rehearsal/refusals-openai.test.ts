// What the two OpenAI APIs refuse, and how they say so.

import { expect, test } from 'vitest';
import type { Json, JsonObject } from '@drover/rehearsal/json';
import { OVERFLOW_DIALECTS } from '@drover/rehearsal/strict/overflow';
import { at, post, requestFor, send, stage, textAt } from './clients.ts';

type Case = [rule: string, body: JsonObject, message: string | RegExp, rest?: JsonObject];

const user = { role: 'user', content: 'go' };
const long = 'x'.repeat(65);

// ── Chat Completions ──────────────────────────────────────────────────────────────────────────

const call = (id: string, more: JsonObject = {}): JsonObject => ({
  id,
  type: 'function',
  function: { name: 'read', arguments: '{}' },
  ...more,
});
const calls = (...all: readonly JsonObject[]): JsonObject => ({ role: 'assistant', content: null, tool_calls: all });
const result = (id: string): JsonObject => ({ role: 'tool', tool_call_id: id, content: 'ok' });
const tool = (name: string, more: JsonObject = {}): JsonObject => ({
  type: 'function',
  function: { name, parameters: { type: 'object' }, ...more },
});

const chatCases: readonly Case[] = [
  [
    'no messages',
    { messages: [] },
    "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    { param: 'messages', code: 'empty_array' },
  ],
  ['no model', { model: '' }, 'you must provide a model parameter'],
  ['an unknown parameter', { top_secret: 1 }, 'Unrecognized request argument supplied: top_secret'],
  [
    'a role that does not exist',
    { messages: [{ role: 'robot', content: 'x' }] },
    "Invalid value: 'robot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
    { param: 'messages[0].role', code: 'invalid_value' },
  ],
  [
    'a message without content',
    { messages: [{ role: 'user', content: null }] },
    "Invalid value for 'content': expected a string, got null.",
    { param: 'messages.[0].content' },
  ],
  [
    'an assistant message without anything',
    { messages: [user, { role: 'assistant', content: null }, user] },
    "Invalid value for 'content': expected a string, got null.",
    { param: 'messages.[1].content' },
  ],
  [
    'a call without a result',
    { messages: [user, calls(call('a'), call('b')), result('a'), user] },
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: b",
    { param: 'messages.[3].role' },
  ],
  [
    'a call at the end',
    { messages: [user, calls(call('a'))] },
    /did not have response messages: a$/,
    { param: 'messages.[2].role' },
  ],
  [
    'a result without a call',
    { messages: [user, result('a')] },
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    { param: 'messages.[1].role' },
  ],
  [
    'two results for a call',
    { messages: [user, calls(call('a')), result('a'), result('a')] },
    /^Invalid parameter: messages with role 'tool'/,
    { param: 'messages.[3].role' },
  ],
  [
    'two calls with one id',
    { messages: [user, calls(call('a'), call('a')), result('a')] },
    /^Invalid parameter: Duplicate value for 'tool_call_id' of 'a'/,
    { param: 'messages.[1].tool_calls' },
  ],
  [
    'a call id that is too long',
    { messages: [user, calls(call('x'.repeat(41))), result('x'.repeat(41))] },
    "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.",
    { param: 'messages[1].tool_calls[0].id', code: 'string_above_max_length' },
  ],
  [
    'arguments that are no text',
    { messages: [user, calls(call('a', { function: { name: 'x', arguments: {} } })), result('a')] },
    "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead.",
    { param: 'messages[1].tool_calls[0].function.arguments', code: 'invalid_type' },
  ],
  [
    'an empty list of calls',
    { messages: [user, { role: 'assistant', content: 'x', tool_calls: [] }] },
    /^Invalid 'messages\[1\]\.tool_calls': empty array/,
    { param: 'messages[1].tool_calls', code: 'empty_array' },
  ],
  ['an empty list of tools', { tools: [] }, /^Invalid 'tools': empty array/, { param: 'tools', code: 'empty_array' }],
  [
    'a tool name outside the alphabet',
    { tools: [tool('a b')] },
    "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    { param: 'tools[0].function.name', code: 'invalid_value' },
  ],
  [
    'a tool name that is too long',
    { tools: [tool(long)] },
    /^Invalid 'tools\[0\]\.function\.name': string too long\. Expected a string with maximum length 64/,
    { param: 'tools[0].function.name', code: 'string_above_max_length' },
  ],
  [
    'two tools of one name',
    { tools: [tool('a'), tool('a')] },
    /^Invalid 'tools': duplicate function name 'a'/,
    { param: 'tools', code: 'invalid_value' },
  ],
  [
    'a strict tool with a loose schema',
    { tools: [tool('a', { strict: true })] },
    "Invalid schema for function 'a': In context=(), 'additionalProperties' is required to be supplied and to be false.",
    { param: 'tools[0].function.parameters', code: 'invalid_function_parameters' },
  ],
  [
    'a tool choice without tools',
    { tool_choice: 'auto' },
    /'tool_choice' is only allowed when 'tools' are specified\.$/,
    { param: 'tool_choice' },
  ],
  [
    'stream options without a stream',
    { stream_options: { include_usage: true } },
    "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    { param: 'stream_options' },
  ],
];

test.each(chatCases)('Chat Completions: %s', async (_, body, message, rest = {}) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const error = {
    type: 'invalid_request_error',
    param: null,
    code: null,
    ...rest,
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  };
  expect(await post(server, 'openai-chat', requestFor('openai-chat', body))).toEqual({ status: 400, json: { error } });
  expect(server.rejections).toBe(1);
});

test('Chat Completions: messages are required', async () => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const { json } = await post(server, 'openai-chat', { model: 'm' });
  expect(at(json, 'error')).toEqual({
    message: "Missing required parameter: 'messages'.",
    type: 'invalid_request_error',
    param: 'messages',
    code: 'missing_required_parameter',
  });
});

test('Chat Completions: a conversation as it should be is accepted', async () => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const messages = [
    { role: 'system', content: 's' },
    user,
    calls(call('a'), call('b')),
    result('b'),
    result('a'),
    user,
    { role: 'assistant', content: '' },
  ];
  expect((await post(server, 'openai-chat', { model: 'm', messages, tools: [tool('read')] })).status).toBe(200);
});

// ── Responses ─────────────────────────────────────────────────────────────────────────────────

const item = (type: string, more: JsonObject): JsonObject => ({ type, ...more });
const fn = (call_id: string, more: JsonObject = {}): JsonObject =>
  item('function_call', { call_id, name: 'read', arguments: '{}', ...more });
const output = (call_id: string): JsonObject => item('function_call_output', { call_id, output: 'ok' });

const responsesCases: readonly Case[] = [
  ['no input', { input: [] }, /must be provided\.$/, { param: 'input', code: 'missing_required_parameter' }],
  [
    'no model',
    { model: '' },
    "Missing required parameter: 'model'.",
    { param: 'model', code: 'missing_required_parameter' },
  ],
  [
    'an unknown parameter',
    { messages: [] },
    "Unknown parameter: 'messages'.",
    { param: 'messages', code: 'unknown_parameter' },
  ],
  [
    'an unknown item',
    { input: [item('mystery', {})] },
    /^Invalid value: 'mystery'\. Supported values are: /,
    { param: 'input[0].type', code: 'invalid_value' },
  ],
  [
    'a call without an output',
    { input: [user, fn('a'), user] },
    'No tool output found for function call a.',
    { param: 'input' },
  ],
  [
    'an output without a call',
    { input: [user, output('a')] },
    'No tool call found for function call output with call_id a.',
    { param: 'input' },
  ],
  [
    'two calls with one id',
    { input: [fn('a'), fn('a'), output('a')] },
    'Duplicate item found with id a. Remove duplicate items from your input and try again.',
    { param: 'input' },
  ],
  [
    'two items with one id',
    { input: [fn('a', { id: 'fc_1' }), fn('b', { id: 'fc_1' }), output('a'), output('b')] },
    /^Duplicate item found with id fc_1\./,
    { param: 'input' },
  ],
  [
    'two outputs for a call',
    { input: [fn('a'), output('a'), output('a')] },
    /^Duplicate item found with id a\./,
    { param: 'input' },
  ],
  [
    'a call id that is too long',
    { input: [fn(long), output(long)] },
    "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
    { param: 'input[0].call_id', code: 'string_above_max_length' },
  ],
  [
    'an item id that is too long',
    { input: [fn('a', { id: `fc_${long}` }), output('a')] },
    /^Invalid 'input\[0\]\.id': string too long/,
    { param: 'input[0].id', code: 'string_above_max_length' },
  ],
  [
    'an item id of another kind',
    { input: [fn('a', { id: 'toolu_1' }), output('a')] },
    "Invalid 'input[0].id': 'toolu_1'. Expected an ID that begins with 'fc'.",
    { param: 'input[0].id', code: 'invalid_value' },
  ],
  [
    'arguments that are no text',
    { input: [fn('a', { arguments: {} }), output('a')] },
    /^Invalid type for 'input\[0\]\.arguments': expected a string/,
    { param: 'input[0].arguments', code: 'invalid_type' },
  ],
  [
    'reasoning without a summary',
    { input: [item('reasoning', { id: 'rs_1' }), user] },
    "Missing required parameter: 'input[0].summary'.",
    { param: 'input[0].summary', code: 'missing_required_parameter' },
  ],
  [
    'content of the wrong side',
    { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }] },
    "Invalid value: 'input_text'. Supported values are: 'output_text', and 'refusal'.",
    { param: 'input[0].content[0].type', code: 'invalid_value' },
  ],
  [
    'reasoning sealed elsewhere',
    {
      input: [
        user,
        item('reasoning', { id: 'rs_1', summary: [], encrypted_content: 'abc' }),
        { role: 'assistant', content: 'x' },
      ],
    },
    /^The encrypted content for item rs_1 could not be verified/,
    { code: 'invalid_encrypted_content' },
  ],
  [
    'a previous response',
    { previous_response_id: 'resp_1' },
    "Previous response with id 'resp_1' not found.",
    { param: 'previous_response_id', code: 'previous_response_not_found' },
  ],
  [
    'a tool name outside the alphabet',
    { tools: [item('function', { name: 'a.b', parameters: { type: 'object' } })] },
    /^Invalid 'tools\[0\]\.name': string does not match pattern/,
    { param: 'tools[0].name', code: 'invalid_value' },
  ],
  [
    'two tools of one name',
    { tools: [item('function', { name: 'a' }), item('function', { name: 'a' })] },
    /duplicate function name 'a'/,
    { param: 'tools', code: 'invalid_value' },
  ],
];

test.each(responsesCases)('Responses: %s', async (_, body, message, rest = {}) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const error = {
    type: 'invalid_request_error',
    param: null,
    code: null,
    ...rest,
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  };
  expect(await post(server, 'openai', requestFor('openai', body))).toEqual({ status: 400, json: { error } });
  expect(server.rejections).toBe(1);
});

test('Responses: reasoning goes back with the item that followed it, and with its seal', async () => {
  const { server } = await stage({
    answers: [{ thinking: 'hm', text: 'so', calls: [{ name: 'read' }] }],
    otherwise: { text: 'fine' },
  });
  const first = await post(
    server,
    'openai',
    requestFor('openai', { store: false, include: ['reasoning.encrypted_content'] }),
  );
  const items = at(first.json, 'output') as readonly JsonObject[];
  const [reasoning = {}, message = {}, made = {}] = items;
  const done = output(textAt(made, 'call_id'));
  const ask = async (input: readonly Json[]) => {
    const { status, json } = await post(server, 'openai', { model: 'm', store: false, input });
    return status === 200 ? 'accepted' : `${status} ${textAt(json, 'error.message')}`;
  };
  const id = textAt(reasoning, 'id');
  const { encrypted_content: _, ...unsealed } = reasoning;

  expect(await ask([user, ...items, done])).toBe('accepted');
  expect(await ask([user, reasoning, made, done])).toBe(
    `400 Item '${id}' of type 'reasoning' was provided without its required following item.`,
  );
  expect(await ask([user, reasoning])).toBe(
    `400 Item '${id}' of type 'reasoning' was provided without its required following item.`,
  );
  expect(await ask([user, message, made, done])).toBe(
    `400 Item '${textAt(message, 'id')}' of type 'message' was provided without its required 'reasoning' item: '${id}'.`,
  );
  expect(await ask([user, unsealed, message, made, done])).toMatch(
    /^404 Item with id 'rs_\w+' not found\. Items are not persisted when `store` is set to false\./,
  );
  // Without ids there is nothing to hold them together.
  const { id: __, ...anonymous } = message;
  expect(await ask([user, anonymous, { ...made, id: 'fc_other' }, done])).toBe('accepted');
});

// ── both ──────────────────────────────────────────────────────────────────────────────────────

test.each(['openai', 'openai-chat'] as const)('%s: a body that is no JSON', async (api) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const { status, json } = await post(server, api, '{"model": "\\ud83d"}');
  expect([status, at(json, 'error.message')]).toEqual([
    400,
    expect.stringMatching(/^We could not parse the JSON body of your request\./),
  ]);
});

test.each(['openai', 'openai-chat'] as const)('%s: a wrong key', async (api) => {
  const { server } = await stage({ answers: [{ text: 'fine' }], keys: ['right'] });
  const wrong = await send(server, api, { body: requestFor(api), headers: { authorization: 'Bearer wrong-key' } });
  expect([wrong.status, at((await wrong.json()) as Json, 'error')]).toEqual([
    401,
    {
      message: 'Incorrect API key provided: …-key.',
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_api_key',
    },
  ]);
  expect((await send(server, api, { body: requestFor(api), headers: { authorization: 'Bearer right' } })).status).toBe(
    200,
  );
});

test('a prompt that is too long, in the dialect of each API', async () => {
  const { server } = await stage({ answers: [{ text: 'fine' }], contextTokens: { m: 10 } });
  const messages = await Promise.all(
    (['anthropic', 'openai-chat', 'openai'] as const).map(async (api) =>
      at((await post(server, api, requestFor(api, {}, 'x'.repeat(80)))).json, 'error'),
    ),
  );
  expect(messages).toEqual([
    { type: 'invalid_request_error', message: 'prompt is too long: 20 tokens > 10 maximum' },
    {
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      param: 'messages',
      message: "This model's maximum context length is 10 tokens. However, your messages resulted in 20 tokens.",
    },
    {
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      param: 'input',
      message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
    },
  ]);
  expect((await post(server, 'openai', requestFor('openai', { model: 'other' }, 'x'.repeat(80)))).status).toBe(200);
});

test('a prompt that is too long, in every dialect', async () => {
  const told = OVERFLOW_DIALECTS.map(async (overflowDialect) => {
    const { server } = await stage({ answers: [{ text: 'fine' }], contextTokens: 10, overflowDialect });
    const response = await send(server, 'openai-chat', { body: requestFor('openai-chat', {}, 'x'.repeat(80)) });
    const said = await response.text();
    return `${overflowDialect}: ${response.status} ${said === '' ? '(nothing)' : textAt(JSON.parse(said) as Json, 'error.message')}`;
  });
  expect((await Promise.all(told)).join('\n')).toMatchInlineSnapshot(`
    "anthropic: 400 prompt is too long: 20 tokens > 10 maximum
    openai: 400 This model's maximum context length is 10 tokens. However, your messages resulted in 20 tokens.
    openai-responses: 400 Your input exceeds the context window of this model. Please adjust your input and try again.
    bedrock: 400 Input is too long for requested model.
    gemini: 400 The input token count (20) exceeds the maximum number of tokens allowed (10).
    xai: 400 This model's maximum prompt length is 10 but the request contains 20 tokens.
    groq: 400 Please reduce the length of the messages or completion.
    moonshot: 400 Invalid request: Your request exceeded model token limit: 10
    llama.cpp: 400 the request exceeds the available context size (10 tokens), try increasing it
    lm-studio: 400 The number of tokens to keep from the initial prompt (20) is greater than the context length (10).
    empty-413: 413 (nothing)"
  `);
});
