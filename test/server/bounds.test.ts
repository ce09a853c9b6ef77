// Bounds of a socket: endless bodies, slow senders, too many of anything. Each is refused or bounded, and other clients
// are served meanwhile.

import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createSimpleTool } from '@drover/core/tools/tool';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { proves } from '../support/proves.ts';
import { allOf, raw, request, socketTo } from '../support/serve/raw-http.ts';
import { eventsUntil, isKept, made, said, serveDesk, type ServeDesk } from '../support/serve/serve-desk.ts';
import { TOKEN } from '../support/serve/serve-host.ts';

const BEARER = `authorization: Bearer ${TOKEN}`;
const MEGABYTE = 1024 * 1024;

/** A tool whose results are short for the model, and long for event readers. */
const loudTool = createSimpleTool(
  { name: 'loud', description: 'Loud.', input: z.object({}), access: 'none', subject: () => '' },
  async () => ({ output: 'ok', details: 'x'.repeat(190_000) }),
);

/** Bytes in live buffers, after a garbage collection. */
function keptBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().arrayBuffers;
}

/** Checks that another client is served meanwhile. */
async function othersAreServed(desk: ServeDesk, port: number): Promise<void> {
  const id = await made(desk);
  expect((await said(desk, id, 'Hello')).at(-1)?.event).toBe('session_end');
  const health = await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { authorization: `Bearer ${TOKEN}` } });
  expect(health.status).toBe(200);
}

const head = (port: number, ...more: string[]): string =>
  ['POST /v1/sessions HTTP/1.1', `host: 127.0.0.1:${port}`, BEARER, 'content-type: application/json', ...more]
    .join('\r\n')
    .concat('\r\n\r\n');

/** Writes until the other side stops reading; returns the number of bytes. */
async function flood(socket: Socket, wrap: (chunk: Buffer) => Buffer, bytesMax: number): Promise<number> {
  const chunk = wrap(Buffer.alloc(64 * 1024, 'x'));
  let sent = 0;
  const over = new Promise((resolve) => socket.once('close', resolve));
  while (!socket.destroyed && socket.writable && sent < bytesMax) {
    sent += chunk.length;
    const hasRoom = socket.write(chunk) || new Promise((resolve) => socket.once('drain', resolve));
    await Promise.race([hasRoom, over]);
    await turn();
  }
  return sent;
}

const asChunk = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);

test.each([
  [
    'that says how long it is',
    (port: number) => head(port, `content-length: ${64 * MEGABYTE}`),
    (bytes: Buffer) => bytes,
  ],
  ['in chunks, without a length', (port: number) => head(port, 'transfer-encoding: chunked'), asChunk],
])('a body %s is refused at the bound, and not stored', async (_, begin, wrap) => {
  const desk = await serveDesk({ otherwise: { text: 'Hello.' } }, { bounds: { bodyBytesMax: MEGABYTE } });
  const { port } = await desk.listen();
  const socket = await socketTo(port);
  const answer = allOf(socket);
  socket.write(begin(port));
  const before = keptBytes();
  await flood(socket, wrap, 64 * MEGABYTE);
  // The collector frees buffers in the background.
  await expect.poll(() => keptBytes() - before, { timeout: 20_000 }).toBeLessThan(16 * MEGABYTE);
  await othersAreServed(desk, port);
  socket.destroy();
  const { status, body } = await answer;
  expect([status, body]).toEqual([413, expect.stringContaining('"type":"body.too_large"') as string]);
});

test('a client that sends too much gets an answer, not just a closed connection', async () => {
  const desk = await serveDesk({}, { bounds: { bodyBytesMax: MEGABYTE } });
  const { url } = await desk.listen();
  const answer = await fetch(`${url}/v1/sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'x'.repeat(9 * MEGABYTE) }),
  });
  expect([answer.status, await answer.json()]).toEqual([413, expect.objectContaining({ type: 'body.too_large' })]);
});

test('a body without the token is not read', async () => {
  const desk = await serveDesk({ otherwise: { text: 'Hello.' } });
  const { port } = await desk.listen();
  const socket = await socketTo(port);
  const answer = allOf(socket);
  socket.write(head(port, 'transfer-encoding: chunked').replace(TOKEN, 'no'));
  await once(socket, 'data');
  await flood(socket, asChunk, 64 * MEGABYTE);
  socket.destroy();
  expect((await answer).status).toBe(401);
});

test.each([
  ['headers', (port: number) => `GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n`, 'x-more: 1\r\n'],
  ['a body', (port: number) => head(port, 'content-length: 100000'), ' '],
])('a client that sends %s byte by byte is waited for within a bound', async (_, begin, piece) => {
  const desk = await serveDesk({ otherwise: { text: 'Hello.' } });
  const { port } = await desk.listen({ headersMs: 200, requestMs: 300 });
  const socket = await socketTo(port);
  const answer = allOf(socket);
  socket.write(begin(port));
  const dripping = setInterval(() => socket.writable && socket.write(piece), 20);
  onTestFinished(() => clearInterval(dripping));
  await othersAreServed(desk, port);
  const { status, body } = await answer;
  expect([status, JSON.parse(body)]).toEqual([408, expect.objectContaining({ type: 'request.too_slow' })]);
});

test('a silent connection is closed', async () => {
  const desk = await serveDesk({});
  const { port } = await desk.listen({ headersMs: 200, requestMs: 300, stalledMs: 300 });
  await allOf(await socketTo(port));
});

test('headers are bounded in size and number', async () => {
  const desk = await serveDesk({ otherwise: { text: 'Hello.' } });
  const { port } = await desk.listen();
  const large = await raw(
    port,
    request('GET /healthz HTTP/1.1', [`host: 127.0.0.1:${port}`, `x-large: ${'x'.repeat(20_000)}`]),
  );
  expect([large.status, JSON.parse(large.body)]).toEqual([431, expect.objectContaining({ type: 'headers.too_large' })]);
  const many = Array.from({ length: 5_000 }, (_, at) => `x-${at}: 1`);
  expect((await raw(port, request('GET /healthz HTTP/1.1', [`host: 127.0.0.1:${port}`, ...many, BEARER]))).status).toBe(
    431,
  );
  const target = await raw(port, request(`GET /${'x'.repeat(20_000)} HTTP/1.1`, [`host: 127.0.0.1:${port}`]));
  expect(target.status).toBe(431);
});

test.each([
  ['what is no request', 'hello\r\n\r\n'],
  ['two lengths', 'POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
  [
    'a length and chunks',
    'POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['a length that is none', 'POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n'],
])('%s is answered with 400 and closes the connection', async (_, text) => {
  const desk = await serveDesk({});
  const { port } = await desk.listen();
  const answer = await raw(port, text);
  expect([answer.status, JSON.parse(answer.body)]).toEqual([
    400,
    expect.objectContaining({ type: 'request.malformed' }),
  ]);
});

test('connections over the limit are refused, and the others continue', async () => {
  const desk = await serveDesk({ otherwise: { text: 'Hello.' } });
  const { port } = await desk.listen({ connectionsMax: 8 });
  const held = await Promise.all(Array.from({ length: 8 }, () => socketTo(port)));
  const refused = await allOf(await socketTo(port));
  expect([refused.status, JSON.parse(refused.body)]).toEqual([
    503,
    expect.objectContaining({ type: 'connections.too_many' }),
  ]);
  held[0]?.write(request('GET /healthz HTTP/1.1', [`host: 127.0.0.1:${port}`, BEARER]));
  const served = held[0] && (await allOf(held[0]));
  expect(served?.status).toBe(200);
  await othersAreServed(desk, port);
});

test('streams over the limit are refused', async () => {
  const desk = await serveDesk({ otherwise: { text: 'Hello.' } }, { bounds: { streamsMax: 2 } });
  const id = await made(desk);
  const open = () => desk.ask('GET', `/v1/sessions/${id}/events`);
  const [one] = [await open(), await open()];
  const third = await open();
  expect([third.status, third.headers.get('retry-after')]).toEqual([503, '1']);
  await one.body?.cancel();
  expect((await open()).status).toBe(200);
});

proves('server.bounded', 'idle streams and a stalled one: events reach all others, memory stays bounded', async () => {
  const script = [
    ...Array.from({ length: 6 }, () => ({ calls: Array.from({ length: 20 }, () => ({ name: 'loud' })) })),
    { text: 'That was loud.' },
  ];
  const desk = await serveDesk(
    { answers: [...script, { text: 'Short.' }] },
    { tools: [loudTool], bounds: { streamBytesMax: 5 * MEGABYTE } },
  );
  const { port } = await desk.listen();
  const [loud, quiet] = [await made(desk), await made(desk)];
  const agent = new Agent({ maxSockets: 200 });
  const stream = async (id: string): Promise<IncomingMessage> => {
    const asking = get({
      port,
      host: '127.0.0.1',
      path: `/v1/sessions/${id}/events`,
      headers: { authorization: `Bearer ${TOKEN}` },
      agent,
    });
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    onTestFinished(() => void response.destroy());
    return response;
  };
  const idle = await Promise.all(Array.from({ length: 100 }, () => stream(quiet)));
  for (const each of idle) each.resume();
  const stuck = await stream(loud);
  stuck.pause();

  const told = await said(desk, loud, 'Be loud.');

  expect(told.at(-1)?.event).toBe('session_end');
  expect((await said(desk, quiet, 'Be short.')).at(-1)?.event).toBe('session_end');
  // The reader was told that it is too slow, and a reconnect delivers the stored events.
  let late = '';
  for await (const chunk of stuck) late += String(chunk);
  expect(late).toMatch(/event: resync\ndata: \{"type":"resync","seq":\d+,"reason":"[^"]+"\}\n\n$/);
  const last = Number([...late.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1]);
  const again = await desk.ask('GET', `/v1/sessions/${loud}/events`, undefined, { 'last-event-id': String(last) });
  const missed = await eventsUntil(again, 'session_end');
  expect(missed.filter(isKept).map(({ data }) => data)).toEqual(
    told.filter((each) => isKept(each) && (each.id ?? 0) > last).map(({ data }) => data),
  );
  expect(missed.length).toBeGreaterThan(1);
});
