// Requests that the server recorded, and its view of its clients.

import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { requestFor, send, stage } from './clients.ts';
import { until } from '../support/until.ts';

test('a request is recorded unchanged, except for the key', async () => {
  const { server, openai } = await stage({ answers: [{ text: 'ok' }] });
  await openai.responses.create({ model: 'm', input: 'go' });
  const [record] = server.requests;
  expect(record).toEqual({
    n: 1,
    api: 'openai',
    agent: 'default',
    path: '/v1/responses',
    headers: expect.objectContaining({ authorization: 'Bearer …rsal', 'content-type': 'application/json' }),
    body: { model: 'm', input: 'go' },
    rawBody: '{"model":"m","input":"go"}',
    at: expect.any(Number),
    faults: [],
    status: 200,
    refusal: undefined,
    aborted: false,
    closedAt: expect.any(Number),
  });
  expect(JSON.stringify(server.requests)).not.toContain('key-for-rehearsal');
});

test('a client that disconnects is noticed at once', async () => {
  const { server } = await stage({ answers: [{ text: 'a lot of text', fault: { fault: 'silence', after: 1 } }] });
  const gone = new AbortController();
  const response = await send(server, 'anthropic', {
    body: requestFor('anthropic', { stream: true }),
    signal: gone.signal,
  });
  await response.body?.getReader().read();
  expect(server.inFlight).toBe(1);

  const at = Date.now();
  gone.abort();
  const record = await server.settled(1);

  expect(record).toMatchObject({ aborted: true, status: 200, faults: ['silence'] });
  expect((record.closedAt ?? Infinity) - at).toBeLessThan(1_000);
  expect(server.inFlight).toBe(0);
});

test('a client that disconnects while sending is noticed too', async () => {
  const { server } = await stage({ otherwise: { text: 'ok' } });
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  socket.write('POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"model":');
  await until(() => server.inFlight > 0);
  await setTimeout(50);
  socket.destroy();
  expect(await server.settled(1)).toMatchObject({ aborted: true, rawBody: '{"model":' });
  expect(server.inFlight).toBe(0);
});

test('requests in flight are counted', async () => {
  const { server } = await stage({ otherwise: { text: 'ok', delayMs: 500 } });
  await Promise.all([1, 2, 3].map(async () => (await send(server, 'openai', { body: requestFor('openai') })).text()));
  await Promise.all([1, 2, 3].map((n) => server.settled(n)));
  expect([server.maxInFlight, server.inFlight]).toEqual([3, 0]);
});

test('a test can wait for a request', async () => {
  const { server } = await stage({ otherwise: { text: 'ok' } });
  const second = server.received(2);
  await send(server, 'openai', { body: requestFor('openai', {}, 'one') });
  await send(server, 'openai', { body: requestFor('openai', {}, 'two') });
  expect((await second).body).toEqual({ model: 'm', input: 'two' });
});

test('a hook sees every request first, and may answer it', async () => {
  const seen: string[] = [];
  const { server } = await stage(
    { otherwise: { text: 'ok' } },
    {
      onRequest: async ({ n, text }) => {
        seen.push(text);
        await setTimeout(1);
        return n === 1 ? { status: 503, body: 'hooked' } : undefined;
      },
    },
  );
  const first = await send(server, 'openai', { body: requestFor('openai') });
  expect([first.status, await first.text()]).toEqual([503, 'hooked']);
  expect((await send(server, 'openai', { body: requestFor('openai') })).status).toBe(200);
  expect(seen).toEqual(['go', 'go']);
});

test('any base address works, and another path is not found', async () => {
  const { server } = await stage({ otherwise: { text: 'ok' }, strict: false });
  const status = async (path: string) => (await fetch(server.url + path, { method: 'POST', body: '{}' })).status;
  expect([
    await status('/anthropic/v1/messages?beta=true'),
    await status('/v4/chat/completions'),
    await status('/openai/responses'),
    await status('/v1/models'),
  ]).toEqual([200, 200, 200, 404]);
});

test('the server starts without the packages that only script files need', () => {
  const program = `
    import { registerHooks } from 'node:module';
    registerHooks({ resolve: (name, context, next) => {
      if (name === 'zod' || name === 'yaml') throw new Error('imports ' + name);
      return next(name, context);
    } });
    const { startRehearsal } = await import('${import.meta.resolve('@drover/rehearsal/server')}');
    const server = await startRehearsal({ answers: [] });
    await server.close();`;
  expect(execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })).toBe('');
});
