// One request and its answer over real sockets: content, key, redirects, ending.

import { gzipSync } from 'node:zlib';
import { setImmediate as turn } from 'node:timers/promises';
import { DroverError } from '@drover/core/errors';
import { describe, expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { ask, closedPort, loopback, never, providerAt, REQUEST, sends } from './loopback.ts';
import { apis, decode, finished, providers, readAll, recording, type Api } from '../recordings.ts';

const TEXT = recording('anthropic', 'text');

const PATHS: Readonly<Record<Api, string>> = {
  anthropic: '/v1/messages',
  'openai-responses': '/v1/responses',
  'openai-chat': '/v1/chat/completions',
};

/** The answer's message, compared with the recording's. */
async function sameAs(api: Api, name: string, url: string): Promise<void> {
  const { message } = finished(await ask(providerAt(url, api)));
  const plain = finished(await readAll(api, decode([recording(api, name)])));
  expect(message.content).toEqual(plain.message.content);
}

describe.each(apis)('%s', (api) => {
  test('asks the right address, with the key, for a stream', async () => {
    const server = await loopback((response) => sends(response, recording(api, 'text')));
    await sameAs(api, 'text', server.url);
    const [asked] = server.asked;
    expect(asked?.request.url).toBe(PATHS[api]);
    expect(asked?.request.headers.authorization).toBe('Bearer secret-key');
    expect(JSON.parse(asked?.body ?? '')).toMatchObject({ model: 'model', stream: true });
  });

  test('reads an answer that is packed', async () => {
    const server = await loopback((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
      response.end(gzipSync(recording(api, 'one-call')));
    });
    await sameAs(api, 'one-call', server.url);
  });

  test('reads an answer that comes byte by byte', async () => {
    const server = await loopback(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const byte of recording(api, 'text')) {
        response.write(Uint8Array.of(byte));
        await turn();
      }
      response.end();
    });
    await sameAs(api, 'text', server.url);
  });

  test('takes an error that comes with status 200 for an error', async () => {
    const body = { error: { type: 'invalid_request_error', message: 'no such thing' } };
    const server = await loopback((response) => sends(response, JSON.stringify(body), 'application/json'));
    await expect(ask(providerAt(server.url, api))).rejects.toMatchObject({
      failure: { kind: 'provider.rejected', status: 400, message: 'no such thing' },
    });
  });

  test('says that a page is not an answer', async () => {
    const server = await loopback((response) => sends(response, '\n<!doctype html><title>Log in</title>', 'text/html'));
    await expect(ask(providerAt(server.url, api))).rejects.toMatchObject({
      failure: { kind: 'provider.rejected', message: 'HTTP 200 with an HTML page instead of an answer' },
    });
  });

  test('says that other JSON is not an answer', async () => {
    const server = await loopback((response) => sends(response, '{"hello": "world"}', 'application/json'));
    await expect(ask(providerAt(server.url, api))).rejects.toMatchObject({ failure: { kind: 'provider.garbled' } });
  });
});

describe('an answer that comes whole instead of as a stream', () => {
  const usage = { input_tokens: 3, output_tokens: 2 };
  const call = { type: 'tool_call', id: 'call_1', name: 'read', args: { path: 'a' } };
  test.each<[Api, unknown]>([
    [
      'anthropic',
      {
        type: 'message',
        content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'call_1', name: 'read', input: { path: 'a' } },
        ],
        stop_reason: 'tool_use',
        usage,
      },
    ],
    [
      'openai-responses',
      {
        object: 'response',
        status: 'completed',
        error: null,
        output: [
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
          { type: 'function_call', call_id: 'call_1', name: 'read', arguments: '{"path":"a"}' },
        ],
        usage,
      },
    ],
    [
      'openai-chat',
      {
        object: 'chat.completion',
        choices: [
          {
            index: 0,
            message: {
              role: 'assistant',
              content: 'I look.',
              tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } }],
            },
            finish_reason: 'tool_calls',
          },
        ],
        usage: { prompt_tokens: 3, completion_tokens: 2 },
      },
    ],
  ])('%s', async (api, whole) => {
    const server = await loopback((response) => sends(response, `  ${JSON.stringify(whole)}`, 'application/json'));
    const { message } = finished(await ask(providerAt(server.url, api)));
    expect(message).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'I look.' }, call],
      stop: 'tool_calls',
      usage: { input: 3, output: 2, cacheRead: 0, cacheWrite: 0 },
    });
  });
});

test('Responses: a whole answer with status failed is a failure', async () => {
  const whole = { object: 'response', status: 'failed', error: null, output: [] };
  const server = await loopback((response) => sends(response, JSON.stringify(whole), 'application/json'));
  await expect(ask(providerAt(server.url, 'openai-responses'))).rejects.toMatchObject({
    failure: { kind: 'provider.unavailable' },
  });
});

describe('redirects', () => {
  proves('key.stays-home', 'to another host are not followed, and the failure says where to', async () => {
    const elsewhere = await loopback((response) => sends(response, TEXT));
    const server = await loopback((response) => response.writeHead(307, { location: `${elsewhere.url}/v1/x` }).end());
    await expect(ask(providerAt(server.url))).rejects.toMatchObject({
      failure: {
        kind: 'provider.rejected',
        status: 307,
        message: `the server wants to send the request on to ${elsewhere.url}, and the key does not go there`,
        fix: `if that is right, set the base URL (now ${server.url}) to it`,
      },
    });
    expect(elsewhere.asked).toEqual([]);
  });

  test('to the same host are followed with the key and the body', async () => {
    const server = await loopback((response, { request }) =>
      request.url === '/there' ? sends(response, TEXT) : response.writeHead(308, { location: '/there' }).end(),
    );
    await sameAs('anthropic', 'text', server.url);
    const [first, second] = server.asked;
    expect(second?.body).toBe(first?.body);
    expect(second?.request.headers.authorization).toBe('Bearer secret-key');
  });

  test('are followed three times', async () => {
    const server = await loopback((response) => response.writeHead(307, { location: '/again' }).end());
    await expect(ask(providerAt(server.url))).rejects.toMatchObject({ failure: { kind: 'provider.rejected' } });
    expect(server.asked.length).toBe(4);
  });

  test('that would lose the body are not followed', async () => {
    const server = await loopback((response) => response.writeHead(302, { location: '/there' }).end());
    await expect(ask(providerAt(server.url))).rejects.toMatchObject({ failure: { kind: 'provider.rejected' } });
    expect(server.asked.length).toBe(1);
  });
});

describe('refusals', () => {
  test('are recognised by status, headers and body', async () => {
    const body = JSON.stringify({ type: 'error', error: { type: 'rate_limit_error', message: 'slow down' } });
    const server = await loopback((response) => response.writeHead(429, { 'retry-after': '3' }).end(body));
    await expect(ask(providerAt(server.url))).rejects.toMatchObject({
      failure: { kind: 'provider.throttled', status: 429, message: 'slow down', retryAfterMs: 3_000 },
    });
  });

  test('are recognised although their body never ends', async () => {
    let size = 0;
    const server = await loopback((response) => {
      response.writeHead(503);
      const more = () => {
        size += 16_384;
        if (!response.destroyed) response.write('x'.repeat(16_384), more);
      };
      more();
    });
    await expect(ask(providerAt(server.url))).rejects.toMatchObject({
      failure: { kind: 'provider.unavailable', status: 503, message: 'HTTP 503 with a plain-text body' },
    });
    expect(size).toBeLessThan(32 * 1024 * 1024);
  });

  test('are recognised although their body breaks off', async () => {
    const server = await loopback((response) => {
      response.writeHead(503, { 'content-length': '100' }).write('{');
      setTimeout(() => response.destroy(), 20);
    });
    await expect(ask(providerAt(server.url))).rejects.toMatchObject({
      failure: { kind: 'provider.unavailable', status: 503 },
    });
  });

  test('are requested once: the SDK does not retry', async () => {
    const server = await loopback((response) => response.writeHead(500).end());
    await expect(ask(providerAt(server.url))).rejects.toBeInstanceOf(DroverError);
    expect(server.asked.length).toBe(1);
  });
});

describe('connections', () => {
  test('that are refused say so, with the host', async () => {
    const url = await closedPort();
    await expect(ask(providerAt(url))).rejects.toMatchObject({
      failure: { kind: 'provider.unavailable', message: `${new URL(url).host} refused the connection (ECONNREFUSED)` },
    });
  });

  test('to something that does not speak TLS say so', async () => {
    const server = await loopback((response) => sends(response, TEXT));
    await expect(ask(providerAt(server.url.replace('http:', 'https:')))).rejects.toMatchObject({
      failure: { kind: 'provider.unavailable', message: expect.stringMatching(/SSL|TLS|EPROTO/) },
    });
  });

  test('that break before the stop reason are not answers', async () => {
    const server = await loopback((response) => {
      response.writeHead(200).write(TEXT.subarray(0, 400));
      setTimeout(() => response.destroy(), 20);
    });
    await expect(ask(providerAt(server.url))).rejects.toMatchObject({ failure: { kind: 'provider.unavailable' } });
  });

  test('that break after the stop reason have delivered an answer', async () => {
    const bytes = recording('anthropic', 'no-message-stop');
    const server = await loopback((response) => {
      response.writeHead(200).write(bytes);
      setTimeout(() => response.destroy(), 20);
    });
    await sameAs('anthropic', 'no-message-stop', server.url);
  });

  test('that the server never ends are left when the answer is complete', async () => {
    const server = await loopback((response) => response.writeHead(200).write(TEXT));
    await sameAs('anthropic', 'text', server.url);
  });

  test('are reused', async () => {
    const server = await loopback((response) => sends(response, TEXT));
    const provider = providerAt(server.url);
    for (let count = 0; count < 6; count++) await ask(provider);
    // fetch keeps two connections, and alternates.
    expect(new Set(server.asked.map(({ request }) => request.socket.remotePort)).size).toBeLessThanOrEqual(2);
  });

  test('are closed when the reader stops', async () => {
    const closed = Promise.withResolvers<void>();
    const server = await loopback((response) => {
      response.on('close', closed.resolve);
      response.writeHead(200).write(TEXT.subarray(0, 600));
    });
    for await (const event of providerAt(server.url).stream(REQUEST, never)) if (event.type === 'text_delta') break;
    await closed.promise;
  });
});

describe('aborting', () => {
  test.each([
    ['before the headers', 0],
    ['in the middle', 400],
  ])('%s closes the connection at once', async (_, size) => {
    const controller = new AbortController();
    const closed = Promise.withResolvers<number>();
    const server = await loopback((response) => {
      let at = 0;
      response.on('close', () => closed.resolve(performance.now() - at));
      if (size > 0) response.writeHead(200).write(TEXT.subarray(0, size));
      setTimeout(() => {
        at = performance.now();
        controller.abort();
      }, 50);
    });
    await expect(ask(providerAt(server.url), controller.signal)).rejects.toMatchObject({
      failure: { kind: 'aborted', by: 'user' },
    });
    expect(await closed.promise).toBeLessThan(1_000);
  });

  test('beforehand sends no request', async () => {
    const server = await loopback((response) => sends(response, TEXT));
    await expect(ask(providerAt(server.url), AbortSignal.abort())).rejects.toMatchObject({
      failure: { kind: 'aborted', by: 'user' },
    });
    expect(server.asked).toEqual([]);
  });

  test('for a reason fails for that reason', async () => {
    const reason = new DroverError({ kind: 'aborted', by: 'shutdown' });
    await expect(ask(providerAt('http://127.0.0.1:9'), AbortSignal.abort(reason))).rejects.toMatchObject({
      failure: { kind: 'aborted', by: 'shutdown' },
    });
  });
});

describe('requests that can’t be sent', () => {
  const timeouts = { headersMs: 1_000, firstByteMs: 1_000, silenceMs: 1_000, progressMs: 1_000 };
  test.each(apis)('%s: a key with a line break is refused, and not shown', async (api) => {
    const provider = providers[api]({ id: 'x', apiKey: 'secret\nkey', baseUrl: 'http://127.0.0.1:9', timeouts });
    const error = await ask(provider).catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      failure: { kind: 'request.unmade', fix: expect.stringContaining('check the key in') },
    });
    expect((error as Error).message).toMatch(/^the request could not be made: /);
    expect((error as Error).message).not.toContain('secret\nkey');
    expect((error as Error).message).not.toContain('secret key');
  });

  test.each(apis)('%s: an invalid address is refused', async (api) => {
    const provider = providers[api]({ id: 'x', apiKey: 'k', baseUrl: 'not an address', timeouts });
    await expect(ask(provider)).rejects.toMatchObject({
      failure: { kind: 'request.unmade', fix: expect.stringContaining('base URL not an address') },
    });
  });
});

test('the headers that tell about limits and ids are noted', async () => {
  const server = await loopback((response) => {
    response.setHeader('request-id', 'req_1');
    response.setHeader('anthropic-ratelimit-tokens-remaining', '7');
    response.setHeader('set-cookie', 'a=b');
    sends(response, TEXT);
  });
  expect(finished(await ask(providerAt(server.url))).notes.headers).toEqual({
    date: expect.any(String),
    'request-id': 'req_1',
    'anthropic-ratelimit-tokens-remaining': '7',
  });
});

test('an event over 16 MB fails', async () => {
  const server = await loopback((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: ');
    const more = () => void (response.destroyed || response.write(Buffer.alloc(1024 * 1024, 'x'), more));
    more();
  });
  await expect(ask(providerAt(server.url))).rejects.toMatchObject({ failure: { kind: 'provider.garbled' } });
});

test('a server without usage gets an estimate of request and answer', async () => {
  const server = await loopback((response) => sends(response, recording('openai-chat', 'usage-null')));
  expect(finished(await ask(providerAt(server.url, 'openai-chat'))).message.usage).toEqual({
    input: 1,
    output: 3,
    cacheRead: 0,
    cacheWrite: 0,
    estimated: true,
  });
});
