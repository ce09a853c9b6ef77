// Ordinary answers through the real SDKs.

import { expect, test } from 'vitest';
import { stage } from './clients.ts';

test('answers are given in order, one a request', async () => {
  const { anthropic, server } = await stage({ answers: [{ text: 'one' }, { text: 'two' }] });
  const ask = () =>
    anthropic.messages.create({ model: 'm', max_tokens: 99, messages: [{ role: 'user', content: 'go' }] });

  const texts = [(await ask()).content, (await ask()).content];

  expect(texts).toEqual([
    [{ type: 'text', text: 'one', citations: null }],
    [{ type: 'text', text: 'two', citations: null }],
  ]);
  expect(server.requests.map(({ n, api, path, status }) => ({ n, api, path, status }))).toEqual([
    { n: 1, api: 'anthropic', path: '/v1/messages', status: 200 },
    { n: 2, api: 'anthropic', path: '/v1/messages', status: 200 },
  ]);
});
