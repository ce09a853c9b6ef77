// Rate limits: refusals with the real headers, and the same headers on success.

import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Json } from '@drover/rehearsal/json';
import { at, requestFor, send, stage } from './clients.ts';

const limited = (headers: Headers): Record<string, string> =>
  Object.fromEntries([...headers].filter(([name]) => name.includes('ratelimit') || name.startsWith('retry-after')));

test('Anthropic: requests per minute are limited', async () => {
  const { server } = await stage({ otherwise: { text: 'ok' }, limits: { requests: 2 } });
  const ask = () => send(server, 'anthropic', { body: requestFor('anthropic') });
  const first = await ask();
  expect([first.status, limited(first.headers)]).toEqual([
    200,
    {
      'anthropic-ratelimit-requests-limit': '2',
      'anthropic-ratelimit-requests-remaining': '1',
      'anthropic-ratelimit-requests-reset': expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    },
  ]);
  await ask();
  const third = await ask();
  expect([third.status, await third.json(), limited(third.headers)]).toEqual([
    429,
    {
      type: 'error',
      error: {
        type: 'rate_limit_error',
        message: "This request would exceed your organization's rate limit of 2 requests per minute.",
      },
      request_id: 'req_3',
    },
    {
      'anthropic-ratelimit-requests-limit': '2',
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-requests-reset': expect.any(String),
      'retry-after': expect.stringMatching(/^(29|30)$/),
    },
  ]);
  expect(server.rejections).toBe(0);
});

test('Anthropic: input tokens are limited, without those read from the cache', async () => {
  const { server } = await stage({ otherwise: { text: 'ok' }, limits: { inputTokens: 3000 } });
  const content = [{ type: 'text', text: 'w'.repeat(8000), cache_control: { type: 'ephemeral' } }];
  const ask = (text: string) =>
    send(server, 'anthropic', {
      body: requestFor('anthropic', { messages: [{ role: 'user', content: [...content, { type: 'text', text }] }] }),
    });
  const statuses = [(await ask('a')).status, (await ask('b')).status, (await ask('x'.repeat(8000))).status];
  expect(statuses).toEqual([200, 200, 429]);
});

test('output tokens are counted as they are produced', async () => {
  const { server } = await stage({ otherwise: { text: 'x'.repeat(400) }, limits: { outputTokens: 60 } });
  const ask = () => send(server, 'anthropic', { body: requestFor('anthropic') });
  const first = await ask();
  await first.text();
  const second = await ask();
  expect([first.status, second.status, at((await second.json()) as Json, 'error.message')]).toEqual([
    200,
    429,
    "This request would exceed your organization's rate limit of 60 output tokens per minute.",
  ]);
  expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(35);
});

test.each(['openai', 'openai-chat'] as const)('%s: requests and tokens per minute are limited', async (api) => {
  const { server } = await stage({ otherwise: { text: 'ok' }, limits: { requests: 60, inputTokens: 100 } });
  const ask = () => send(server, api, { body: requestFor(api, {}, 'x'.repeat(240)) });
  const first = await ask();
  expect([first.status, limited(first.headers)]).toEqual([
    200,
    {
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-limit-tokens': '100',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-remaining-tokens': '40',
      'x-ratelimit-reset-requests': expect.stringMatching(/^(1|0?\.\d+)s$|^\d+ms$/),
      'x-ratelimit-reset-tokens': expect.stringMatching(/^3[56](\.\d+)?s$/),
    },
  ]);
  const second = await ask();
  expect([second.status, at((await second.json()) as Json, 'error')]).toEqual([
    429,
    {
      message: expect.stringMatching(
        /^Rate limit reached on input tokens per min: Limit 100\. Please try again in 1\d(\.\d+)?s\.$/,
      ),
      type: 'tokens',
      param: null,
      code: 'rate_limit_exceeded',
    },
  ]);
  expect(Number(second.headers.get('retry-after-ms'))).toBeGreaterThan(10_000);
  expect(second.headers.get('retry-after')).toMatch(/^1[12]$/);
});

test('a bucket refills', async () => {
  const { server } = await stage({ otherwise: { text: 'ok' }, limits: { requests: 1, windowMs: 1_000 } });
  const ask = async () => (await send(server, 'openai', { body: requestFor('openai') })).status;
  expect([await ask(), await ask()]).toEqual([200, 429]);
  await setTimeout(1_100);
  expect(await ask()).toBe(200);
});

test('concurrent requests are limited', async () => {
  const { server } = await stage({ otherwise: { text: 'ok', delayMs: 1_000 }, limits: { concurrency: 2 } });
  const ask = () => send(server, 'anthropic', { body: requestFor('anthropic') });
  const statuses = (await Promise.all([ask(), ask(), ask()])).map(({ status }) => status);
  expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 200, 429]);
  expect((await ask()).status).toBe(200);
});
