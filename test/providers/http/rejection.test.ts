// Rejections of a provider: status, headers and body become a failure.

import type { Failure } from '@drover/protocol/failures';
import { failureOfHttpResponse } from '@drover/core/model/wire/http/rejection';
import { describe, expect, test } from 'vitest';
import { decode, readAll, source, type Api } from '../recordings.ts';

const { account } = source;

function failure(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Failure {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return failureOfHttpResponse({ status, header: (name) => headers[name], body: text }, account);
}

const saying = (message: string, type = 'some_error') => ({ type: 'error', error: { type, message } });

test.each([408, 409, 500, 502, 503, 504, 520, 524, 529])('%i is retriable', (status) => {
  expect(failure(status, saying('busy'))).toEqual({ kind: 'provider.unavailable', status, message: 'busy' });
});

test.each<[number, string | undefined]>([
  [400, undefined],
  [401, 'check the key in SOME_KEY'],
  [402, 'check the plan and the billing of the account behind SOME_KEY'],
  [403, 'check what the key in SOME_KEY may be used for'],
  [404, "check the model's name, and the base URL http://host/"],
  [413, 'send less: fewer or smaller images and files'],
  [422, undefined],
  [501, undefined],
])('%i is final, with the fix', (status, fix) => {
  expect(failure(status, saying('no'))).toEqual({
    kind: 'provider.rejected',
    status,
    message: 'no',
    ...(fix !== undefined && { fix }),
  });
});

test.each<[string, unknown]>([
  ['Anthropic', { type: 'error', error: { type: 'x', message: 'why' }, request_id: 'req_1' }],
  ['OpenAI', { error: { message: 'why', type: 'x', param: null, code: null } }],
  ['a list', [{ error: { code: 400, message: 'why', status: 'INVALID_ARGUMENT' } }]],
  ['Mistral', { object: 'error', message: 'why', type: 'x', code: 1 }],
  ['text', { error: 'why' }],
  ['detail', { detail: 'why' }],
  ['details', { detail: [{ loc: ['body'], msg: 'why' }] }],
  ['errors', { errors: [{ message: 'why' }] }],
])('the reason is found where %s puts it', (_, body) => {
  expect(failure(400, body)).toEqual({ kind: 'provider.rejected', status: 400, message: 'why' });
});

test('a router’s reason comes with that of the server behind it', () => {
  const body = { error: { message: 'Provider returned error', code: 502, metadata: { raw: 'upstream is down' } } };
  expect(failure(502, body)).toMatchObject({ message: 'Provider returned error: upstream is down' });
});

test.each<[string, string, string]>([
  ['HTML', '<html><body><h1>502 Bad Gateway</h1></body></html>', 'HTTP 502 with an HTML page'],
  ['nothing', '', 'HTTP 502 with an empty body'],
  ['plain text', 'upstream connect error', 'HTTP 502 with a plain-text body'],
  ['JSON without a reason', '{"ok":false}', 'HTTP 502 with a JSON body that gives no reason'],
])('%s as a body is named, not shown', (_, body, message) => {
  expect(failure(502, body)).toEqual({ kind: 'provider.unavailable', status: 502, message });
});

test('a long reason becomes one line of 300 characters', () => {
  const { message } = failure(400, saying(`line\n${'x'.repeat(1_000)}`)) as Extract<Failure, { message: string }>;
  expect(message).toBe(`line ${'x'.repeat(294)}…`);
});

test('a key that the server quotes is not shown', () => {
  expect(failure(401, saying('bad key: secret-key'))).toMatchObject({ message: 'bad key: [key]' });
});

describe('429', () => {
  const wait = (headers: Record<string, string>, message = 'slow down') => failure(429, saying(message), headers);
  const throttled = (retryAfterMs?: number) => ({
    kind: 'provider.throttled',
    status: 429,
    message: 'slow down',
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
  const date = 'Mon, 16 Nov 2026 12:00:00 GMT';

  test.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
    [{ 'retry-after': '2' }, 2_000],
    [{ 'retry-after': '1.5' }, 1_500],
    [{ 'retry-after': '1000000000' }, 1e12],
    [{ 'retry-after': 'Mon, 16 Nov 2026 12:00:07 GMT', date }, 7_000],
    [{ 'retry-after': 'Mon, 16 Nov 2026 11:00:00 GMT', date }, undefined],
    [{ 'retry-after': '0' }, undefined],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after': 'NaN' }, undefined],
    [{ 'retry-after': 'Infinity' }, undefined],
    [{ 'retry-after': '9'.repeat(400) }, undefined],
    [{ 'retry-after-ms': 'NaN', 'retry-after': '3' }, 3_000],
    [{ 'anthropic-ratelimit-tokens-reset': '2026-11-16T12:00:30Z', date }, 30_000],
    [
      {
        'anthropic-ratelimit-requests-reset': '2026-11-16T12:00:05Z',
        'anthropic-ratelimit-requests-remaining': '9',
        'anthropic-ratelimit-input-tokens-reset': '2026-11-16T12:00:40Z',
        'anthropic-ratelimit-input-tokens-remaining': '0',
        date,
      },
      40_000,
    ],
    [{ 'x-ratelimit-reset-requests': '1s', 'x-ratelimit-reset-tokens': '6m0s' }, 1_000],
    [{ 'x-ratelimit-reset-tokens': '1h2m3.5s' }, 3_723_500],
    [{ 'x-ratelimit-reset-tokens': '20ms' }, 20],
    [{ 'x-ratelimit-reset-tokens': 'soon' }, undefined],
  ])('%o asks to wait %s ms', (headers, ms) => {
    expect(wait(headers)).toEqual(throttled(ms));
  });

  test('the wait is read from the message if no header has it', () => {
    expect(wait({}, 'Please try again in 1.242s.')).toMatchObject({ retryAfterMs: 1_242 });
  });

  test.each([
    saying('You exceeded your current quota, please check your plan and billing details.', 'insufficient_quota'),
    { error: { message: 'no', code: 'insufficient_quota' } },
    saying('Your credit balance is too low.'),
    { error: { message: 'You exceeded your current quota.' } },
  ])('an exhausted quota is final: %o', (body) => {
    expect(failure(429, body)).toMatchObject({
      kind: 'provider.rejected',
      status: 429,
      fix: 'check the plan and the billing of the account behind SOME_KEY',
    });
  });

  test.each([
    'Rate limit reached on tokens per min (TPM): Limit 30000. Add a payment method at https://host/account/billing.',
    'Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 31000. Reduce the length of the messages.',
    'You exceeded your current quota. Quota exceeded for requests per day. Please retry in 30s.',
    'Too many tokens at once. Please reduce the length of the messages.',
  ])('a rate limit is not final: %s', (message) => {
    expect(failure(429, saying(message))).toMatchObject({ kind: 'provider.throttled' });
  });
});

describe('x-should-retry', () => {
  test('true wins over a status that is final', () => {
    expect(failure(400, saying('no'), { 'x-should-retry': 'true', 'retry-after': '1' })).toEqual({
      kind: 'provider.unavailable',
      status: 400,
      message: 'no',
      retryAfterMs: 1_000,
      shouldRetry: true,
    });
  });

  test('false wins over a status that is not', () => {
    expect(failure(503, saying('no'), { 'x-should-retry': 'false' })).toMatchObject({ kind: 'provider.rejected' });
    expect(failure(429, saying('no'), { 'x-should-retry': 'false' })).toMatchObject({ kind: 'provider.rejected' });
  });

  test('true wins over an exhausted quota', () => {
    const quota = saying('You exceeded your current quota, please check your plan.', 'insufficient_quota');
    expect(failure(429, quota, { 'x-should-retry': 'true' })).toMatchObject({ kind: 'provider.throttled' });
  });

  test('a rate limit that may be retried is still a rate limit', () => {
    expect(failure(429, saying('no'), { 'x-should-retry': 'true' })).toMatchObject({ kind: 'provider.throttled' });
  });

  test('an overlong conversation is still reported as such', () => {
    const headers = { 'x-should-retry': 'false' };
    expect(failure(400, saying('prompt is too long: 9 tokens > 8 maximum'), headers)).toMatchObject({
      kind: 'context.overflow',
    });
  });
});

describe('an overlong conversation', () => {
  test.each([
    'prompt is too long: 210000 tokens > 200000 maximum',
    'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
    'Input is too long for requested model.',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).',
    "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
    "This model's maximum context length is 8192 tokens.",
    'Please reduce the length of the messages or completion.',
    'Invalid request: Your request exceeded model token limit: 128000',
    'the request exceeds the available context size, try increasing it',
    'The number of tokens to keep from the initial prompt is greater than the context length.',
    'Your input exceeds the context window of this model.',
  ])('%s', (message) => {
    expect(failure(400, saying(message, 'invalid_request_error'))).toEqual({ kind: 'context.overflow', message });
  });

  test('is known by its code', () => {
    const body = { error: { message: 'no', type: 'invalid_request_error', code: 'context_length_exceeded' } };
    expect(failure(400, body)).toEqual({ kind: 'context.overflow', message: 'no' });
  });

  test.each(['string_above_max_length', 'context_window_exceeded'])('is known by the code %s', (code) => {
    expect(failure(400, { error: { message: 'no', code } })).toEqual({ kind: 'context.overflow', message: 'no' });
  });

  test.each([400, 413])('is not what %i says about a rate', (status) => {
    const message = 'Request too large on tokens per minute (TPM): Limit 6000. Reduce the length of the messages.';
    expect(failure(status, saying(message))).toMatchObject({ kind: 'provider.rejected', status });
  });

  test('is known by 413 without a body', () => {
    expect(failure(413, '')).toEqual({ kind: 'context.overflow', message: 'HTTP 413 with an empty body' });
  });

  test('is not what a page with 413 says', () => {
    expect(failure(413, '<html>413</html>')).toMatchObject({ kind: 'provider.rejected' });
  });
});

describe('an error in the middle of a stream', () => {
  async function failureIn(api: Api, ...events: readonly unknown[]): Promise<unknown> {
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    return readAll(api, decode([Buffer.from(text)])).then(
      () => 'an answer',
      (error: { failure: Failure }) => error.failure,
    );
  }

  test.each<[string, Failure['kind'], number]>([
    ['overloaded_error', 'provider.unavailable', 529],
    ['api_error', 'provider.unavailable', 500],
    ['timeout_error', 'provider.unavailable', 504],
    ['rate_limit_error', 'provider.throttled', 429],
    ['invalid_request_error', 'provider.rejected', 400],
    ['authentication_error', 'provider.rejected', 401],
    ['billing_error', 'provider.rejected', 402],
    ['permission_error', 'provider.rejected', 403],
    ['not_found_error', 'provider.rejected', 404],
    ['never_heard_of', 'provider.unavailable', 500],
  ])('Anthropic: %s is %s', async (type, kind, status) => {
    const event = { type: 'error', error: { type, message: 'because' } };
    expect(await failureIn('anthropic', event)).toMatchObject({ kind, status, message: 'because' });
  });

  test.each<[string, unknown, Failure['kind']]>([
    ['server_error', { code: 'server_error', message: 'oops' }, 'provider.unavailable'],
    ['rate_limit_exceeded', { code: 'rate_limit_exceeded', message: 'slow' }, 'provider.throttled'],
    ['invalid_prompt', { code: 'invalid_prompt', message: 'no' }, 'provider.rejected'],
    ['context_length_exceeded', { code: 'context_length_exceeded', message: 'long' }, 'context.overflow'],
  ])('Responses: %s, as a failed response and as an event', async (_, error, kind) => {
    const failed = { type: 'response.failed', response: { status: 'failed', error } };
    expect(await failureIn('openai-responses', { type: 'response.created' }, failed)).toMatchObject({ kind });
    expect(await failureIn('openai-responses', { ...(error as object), type: 'error' })).toMatchObject({ kind });
    expect(await failureIn('openai-responses', { type: 'error', error })).toMatchObject({ kind });
  });

  test.each<[string, unknown, Failure['kind']]>([
    ['a status as code', { error: { code: 502, message: 'upstream' } }, 'provider.unavailable'],
    ['a rate', { error: { code: 429, message: 'slow' } }, 'provider.throttled'],
    ['a type', { error: { type: 'invalid_request_error', message: 'no' } }, 'provider.rejected'],
    ['a text', { error: 'broken pipe' }, 'provider.unavailable'],
    ['no wrapping', { object: 'error', message: 'no', code: 400 }, 'provider.rejected'],
    [
      'choices beside it',
      { error: { code: 503, message: 'x' }, choices: [{ delta: {}, finish_reason: 'error' }] },
      'provider.unavailable',
    ],
    ['a stop reason only', { choices: [{ index: 0, delta: {}, finish_reason: 'error' }] }, 'provider.unavailable'],
    [
      'a full window',
      { choices: [{ index: 0, delta: {}, finish_reason: 'model_context_window_exceeded' }] },
      'context.overflow',
    ],
  ])('Chat: an error with %s', async (_, chunk, kind) => {
    const before = { choices: [{ index: 0, delta: { content: 'so far' } }] };
    expect(await failureIn('openai-chat', before, chunk)).toMatchObject({ kind });
  });

  test('Anthropic: a full context window is an overlong conversation', async () => {
    const stop = { type: 'message_delta', delta: { stop_reason: 'model_context_window_exceeded' } };
    expect(await failureIn('anthropic', { type: 'message_start', message: {} }, stop)).toMatchObject({
      kind: 'context.overflow',
    });
  });
});
