// Requests that the Responses API refuses, with its error bodies.

import { expect, test } from 'vitest';
import type { Json, JsonObject } from '@drover/rehearsal/json';
import { at, post, requestFor, stage, textAt } from '../clients.ts';
import { refusal, user, type Case } from './refusals.ts';

const long = 'x'.repeat(65);
const item = (type: string, more: JsonObject): JsonObject => ({ type, ...more });
const fn = (call_id: string, more: JsonObject = {}): JsonObject =>
  item('function_call', { call_id, name: 'read', arguments: '{}', ...more });
const output = (call_id: string): JsonObject => item('function_call_output', { call_id, output: 'ok' });

const refused: readonly Case[] = [
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

test.each(refused)('Responses: %s', async (_, body, message, rest) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  expect(await post(server, 'openai', requestFor('openai', body))).toEqual(refusal(message, rest));
  expect(server.rejections).toBe(1);
});

test('Responses: reasoning returns with the item after it and its encrypted content', async () => {
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
  // Without ids no item refers to another.
  const { id: __, ...anonymous } = message;
  expect(await ask([user, anonymous, { ...made, id: 'fc_other' }, done])).toBe('accepted');
});
