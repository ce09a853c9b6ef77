// Requests that both OpenAI APIs refuse alike: a body that is not JSON, and a wrong key.

import { expect, test } from 'vitest';
import type { Json } from '@drover/rehearsal/json';
import { at, post, requestFor, send, stage } from '../clients.ts';

test.each(['openai', 'openai-chat'] as const)('%s: a body that is not JSON is refused', async (api) => {
  const { server } = await stage({ answers: [{ text: 'fine' }] });
  const { status, json } = await post(server, api, '{"model": "\\ud83d"}');
  expect([status, at(json, 'error.message')]).toEqual([
    400,
    expect.stringMatching(/^We could not parse the JSON body of your request\./),
  ]);
});

test.each(['openai', 'openai-chat'] as const)('%s: a wrong key is refused', async (api) => {
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
