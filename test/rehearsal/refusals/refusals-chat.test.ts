// Requests that Chat Completions refuses, with its error bodies.

import { expect, test } from 'vitest';
import type { JsonObject } from '@drover/rehearsal/json';
import { at, post, requestFor, stage } from '../clients.ts';
import { refusal, user, type Case } from './refusals.ts';

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

const refused: readonly Case[] = [
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
    { tools: [tool('x'.repeat(65))] },
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

test.each(refused)('Chat Completions: %s', async (_, body, message, rest) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  expect(await post(server, 'openai-chat', requestFor('openai-chat', body))).toEqual(refusal(message, rest));
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

test('Chat Completions: a valid conversation is accepted', async () => {
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
