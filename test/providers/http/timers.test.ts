// Silent servers: the four timers.

import { setTimeout as sleep } from 'node:timers/promises';
import { defaultTimeouts } from '@drover/core/model/catalog';
import type { StreamTimeouts } from '@drover/core/model/provider';
import { expect, onTestFinished, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { ask, loopback, never, providerAt, REQUEST } from './loopback.ts';
import { finished, recording } from '../recordings.ts';

const TEXT = recording('anthropic', 'text');
const HEAD = TEXT.subarray(0, 600);
const PING = 'event: ping\ndata: {"type": "ping"}\n\n';

async function failureWith(
  timeouts: Partial<StreamTimeouts>,
  answer: Parameters<typeof loopback>[0],
): Promise<unknown> {
  const server = await loopback(answer);
  return ask(providerAt(server.url, 'anthropic', timeouts)).then(
    () => 'an answer',
    (error: { failure: unknown }) => error.failure,
  );
}

const stalled = (timer: string, afterMs: number) => ({ kind: 'provider.stalled', timer, afterMs });

proves('stream.no-hanging', 'no headers', async () => {
  expect(await failureWith({ headersMs: 100 }, () => undefined)).toEqual(stalled('headers', 100));
});

proves('stream.no-hanging', 'headers, but no first byte', async () => {
  const failure = await failureWith({ firstByteMs: 100 }, (response) => response.writeHead(200).flushHeaders());
  expect(failure).toEqual(stalled('first-byte', 100));
});

proves('stream.no-hanging', 'silence in the middle', async () => {
  const failure = await failureWith({ silenceMs: 100 }, (response) => response.writeHead(200).write(HEAD));
  expect(failure).toEqual(stalled('silence', 100));
});

proves('stream.no-hanging', 'silence in the middle of an answer that comes as one JSON body', async () => {
  const failure = await failureWith({ silenceMs: 100 }, (response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"type":"message","content":[{"type":"te');
  });
  expect(failure).toEqual(stalled('silence', 100));
});

proves('stream.no-hanging', 'nothing but keep-alives', async () => {
  for (const keepAlive of [PING, ': still here\n\n', 'data: {"type":"keepalive"}\n\n', '\n']) {
    const failure = await failureWith({ silenceMs: 5_000, progressMs: 200 }, (response) => {
      response.writeHead(200).write(HEAD);
      const timer = setInterval(() => response.write(keepAlive), 20);
      response.on('close', () => clearInterval(timer));
    });
    expect(failure).toEqual(stalled('progress', 200));
  }
});

test('by default a model may think for ten minutes while the server sends keep-alives', () => {
  expect(defaultTimeouts.progressMs).toBeGreaterThan(10 * 60_000);
  expect(defaultTimeouts.silenceMs).toBeGreaterThanOrEqual(60_000);
  expect(Math.max(...Object.values(defaultTimeouts))).toBeLessThan(3_600_000);
});

test('keep-alives are not silence, and the final content is an answer', async () => {
  const failure = await failureWith({ silenceMs: 400, progressMs: 20_000 }, async (response) => {
    response.writeHead(200).write(HEAD);
    for (let count = 0; count < 12; count++) {
      await sleep(100);
      response.write(count % 2 === 0 ? PING : ': hm\n');
    }
    response.end(TEXT.subarray(600));
  });
  expect(failure).toBe('an answer');
});

test('a slow but steady stream is not cut', async () => {
  const failure = await failureWith({ silenceMs: 400, progressMs: 600 }, async (response) => {
    response.writeHead(200);
    for (const event of TEXT.toString('utf8').split(/(?<=\n\n)/)) {
      response.write(event);
      await sleep(150);
    }
    response.end();
  });
  expect(failure).toBe('an answer');
});

test('a slow reader is not a silent server', async () => {
  const isReading = Promise.withResolvers<void>();
  const server = await loopback(async (response) => {
    response.writeHead(200).write(HEAD);
    await isReading.promise;
    await sleep(400);
    response.end(TEXT.subarray(600));
  });
  const provider = providerAt(server.url, 'anthropic', { silenceMs: 1_000, progressMs: 1_000 });
  const events = [];
  for await (const event of provider.stream(REQUEST, never)) {
    if (events.length === 1) await sleep(1_900);
    if (events.length === 1) isReading.resolve();
    events.push(event);
  }
  expect(finished(events).message.stop).toBe('stop');
});

test('a busy process finds the data that arrived meanwhile', async () => {
  const server = await loopback(async (response) => {
    response.writeHead(200).write(HEAD);
    await sleep(50);
    response.end(TEXT.subarray(600));
  });
  const provider = providerAt(server.url, 'anthropic', { silenceMs: 200, progressMs: 200 });
  const events = [];
  for await (const event of provider.stream(REQUEST, never)) {
    if (events.length === 0) setTimeout(() => block(600), 10);
    events.push(event);
  }
  expect(finished(events).message.stop).toBe('stop');
});

function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

test('fetch’s own limits do not apply', async () => {
  const symbol = Symbol.for('undici.globalDispatcher.1');
  new Headers(); // loads undici, which sets the dispatcher
  type Dispatcher = { dispatch: (options: object, handler: object) => boolean };
  const real = Reflect.get(globalThis, symbol) as Dispatcher;
  Reflect.set(globalThis, symbol, {
    dispatch: (options: object, handler: object) => real.dispatch({ bodyTimeout: 300, ...options }, handler),
  });
  onTestFinished(() => void Reflect.set(globalThis, symbol, real));

  const failure = await failureWith({}, async (response) => {
    response.writeHead(200).write(HEAD);
    await sleep(2_500);
    response.end(TEXT.subarray(600));
  });
  expect(failure).toBe('an answer');
});
