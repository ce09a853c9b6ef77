// Refusals of an overlong prompt: by each API, and in the dialect of each server.

import { expect, test } from 'vitest';
import type { Json } from '@drover/rehearsal/json';
import { OVERFLOW_DIALECTS } from '@drover/rehearsal/strict/overflow';
import { at, post, requestFor, send, stage, textAt } from '../clients.ts';

test('an overlong prompt is refused in the dialect of each API', async () => {
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

test('an overlong prompt is refused in every dialect', async () => {
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
