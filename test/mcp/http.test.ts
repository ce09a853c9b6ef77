// MCP servers over streamable HTTP: real ones of the protocol's library, and ones that misbehave.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { address, call, desk, type Desk } from '../support/mcp/brokers.ts';
import { Listener } from '../support/mcp/http/listener.ts';
import { PIXEL, sdkServer } from '../support/mcp/http/sdk-server.ts';

const EVERYTHING = new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url)
  .pathname;
const SLOW = { timeout: 60_000 };
const PATIENT = { timeout: 20_000 };

const ask = async (to: Desk, tool: string, args: Record<string, string> = {}) =>
  call(to.line(), { server: 'remote', tool, args });

async function everything(): Promise<string> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  const child = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stderr, 'data');
  return `http://127.0.0.1:${port}/mcp`;
}

test('the reference server from npm lists and answers over HTTP', SLOW, async () => {
  const made = await desk([address(await everything())]);
  expect(made.opened.problems).toEqual([]);
  expect(made.opened.tools.map(({ tool }) => tool)).toContain('get-tiny-image');
  expect(await ask(made, 'echo', { message: 'hi' })).toEqual({ output: 'Echo: hi' });
  const { images = [] } = await ask(made, 'get-tiny-image');
  expect(images.map(({ mediaType }) => mediaType)).toEqual(['image/png']);
});

test.each(['sessions', 'stateless'] as const)('texts, images and errors arrive from a server with %s', async (kind) => {
  const server = await sdkServer({ kind });
  const made = await desk([address(server.url)]);
  expect(made.opened.problems).toEqual([]);
  expect(made.opened.tools.map(({ tool }) => tool)).toEqual(['echo', 'fails', 'picture', 'silent', 'slow']);
  expect(await ask(made, 'echo', { message: 'hi' })).toEqual({ output: 'Echo: hi' });
  expect(await ask(made, 'fails')).toEqual({ output: 'no such table', isError: true });
  expect((await ask(made, 'picture')).images).toEqual([{ type: 'image', mediaType: 'image/png', data: PIXEL }]);
  const versions = new Set(server.seen.map(({ headers }) => headers.get('mcp-protocol-version')));
  expect(versions.has(kind === 'sessions' ? '2025-11-25' : '2026-07-28')).toBe(true);
});

test.each(['sessions', 'stateless'] as const)('progress, cancel and timeout work with %s', async (kind) => {
  const server = await sdkServer({ kind });
  const made = await desk([address(server.url, { timeoutMs: 1_000 })]);
  const deltas: string[] = [];
  const onDelta = (delta: string) => void deltas.push(delta);
  expect(await call(made.line(), { server: 'remote', tool: 'slow' }, { onDelta })).toEqual({ output: 'slow is done' });
  expect(deltas[0]).toBe('1/2\n');
  const stop = new AbortController();
  const cancelled = call(made.line(), { server: 'remote', tool: 'silent' }, { signal: stop.signal });
  await expect.poll(() => server.ran['silent'], PATIENT).toBe(1);
  stop.abort();
  expect((await cancelled).output).toMatch(/^Interrupted/);
  const cancels = () => server.cancelled.filter((tool) => tool === 'silent').length;
  await expect.poll(cancels, PATIENT).toBe(1);
  expect((await ask(made, 'silent')).output).toContain('did not answer: nothing came for 1 s');
  await expect.poll(cancels, PATIENT).toBe(2);
});

test('a call begins a new session where the old one has ended', async () => {
  const server = await sdkServer();
  const made = await desk([address(server.url)]);
  for (let times = 0; times < 5; times++) {
    server.forget();
    expect(await ask(made, 'echo', { message: String(times) })).toEqual({ output: `Echo: ${times}` });
  }
  expect([server.ran['echo'], made.pauses]).toEqual([5, []]);
});

test('a server that is started again answers again', async () => {
  const server = await sdkServer();
  const made = await desk([address(server.url)]);
  await server.listener.stop();
  server.forget();
  await server.listener.start();
  // A call on a connection that the stop has cut may have taken effect, so it fails.
  await expect.poll(async () => ask(made, 'echo', { message: 'back' }), PATIENT).toEqual({ output: 'Echo: back' });
  expect(server.ran['echo']).toBe(1);
});

test('a server that is gone is tried three times, then its tools say so', async () => {
  const server = await sdkServer();
  const made = await desk([address(server.url)]);
  await server.listener.stop();
  await expect
    .poll(async () => (await ask(made, 'echo')).output, PATIENT)
    .toMatch(/it ended or did not start 3 times, and is not started again.*it cannot be reached \(ECONNREFUSED\)/);
  expect(made.pauses).toEqual([1_000, 4_000]);
});

test('a call whose server stops meanwhile fails at once and is not sent again', async () => {
  const server = await sdkServer();
  const made = await desk([address(server.url)]);
  const asked = ask(made, 'silent');
  await expect.poll(() => server.ran['silent'], PATIENT).toBe(1);
  await server.listener.stop();
  await server.listener.start();
  expect((await asked).output).toMatch(/may have taken effect/);
  expect(server.ran['silent']).toBe(1);
});

test('the session ends with the broker', async () => {
  const server = await sdkServer();
  const made = await desk([address(server.url)]);
  await ask(made, 'echo', { message: 'x' });
  expect(server.sessions.size).toBe(1);
  await made.close();
  expect(server.sessions.size).toBe(0);
});

test('a redirect to another host gets no headers, and is named', async () => {
  const other = await sdkServer();
  const first = await sdkServer({
    before: async () => new Response(null, { status: 307, headers: { location: other.url } }),
  });
  const made = await desk([address(first.url, { headers: { authorization: 'Bearer for-the-first' } })]);
  expect(made.opened.problems.map(({ message }) => message)).toEqual([expect.stringContaining('redirect')]);
  expect([first.seen.length > 0, other.seen]).toEqual([true, []]);
});

test('a redirect within the host is followed', async () => {
  const server = await sdkServer({
    before: async ({ url }) =>
      url.endsWith('/mcp') ? new Response(null, { status: 307, headers: { location: '/mcp/' } }) : undefined,
  });
  const made = await desk([address(server.url)]);
  expect(await ask(made, 'echo', { message: 'there' })).toEqual({ output: 'Echo: there' });
});

/** The SDK's server, but calls get what the test says, after the handshake. */
async function answeringCalls(type: string, body: string): Promise<Desk> {
  const server = await sdkServer({
    before: async (request) => {
      const { method } =
        request.method === 'POST' ? ((await request.clone().json()) as { method: string }) : { method: '' };
      return method === 'tools/call' ? new Response(body, { headers: { 'content-type': type } }) : undefined;
    },
  });
  // Only an answer to another request waits for the time limit.
  return desk([address(server.url, { timeoutMs: body.includes('99') ? 500 : 20_000 })]);
}

const STREAM = 'text/event-stream';
const ANSWERS: readonly (readonly [string, string, string, RegExp])[] = [
  ['half a message as JSON', 'application/json', '{"jsonrpc": "2.0", "id', /could not do it/],
  ['half a message as an event', STREAM, 'data: {"jsonrpc": "2.0", "id\n\n', /connection ended before the answer/],
  ['no event', STREAM, '', /connection ended before the answer/],
  ['the answer to another request', 'application/json', '{"jsonrpc":"2.0","id":99,"result":{}}', /nothing came/],
  ['a page', 'text/html', '<h1>502</h1>', /could not do it: Unexpected content type: text\/html/],
  ['12 MiB as JSON', 'application/json', `"${'x'.repeat(12 * 1024 * 1024)}"`, /more than 10 MiB/],
  ['12 MiB as an event', STREAM, `data: "${'x'.repeat(12 * 1024 * 1024)}"\n\n`, /before the answer/],
];

test.each(ANSWERS)('a call that is answered with %s fails, and the server stays', async (_, type, body, said) => {
  const made = await answeringCalls(type, body);
  const { output, isError } = await ask(made, 'echo');
  expect([output, isError]).toEqual([expect.stringMatching(said), true]);
  expect(output.length).toBeLessThan(2_000);
});

test('an address where nothing speaks the protocol is named', async () => {
  const { origin } = await Listener.open((_, response) => response.end('hello'));
  const { opened } = await desk([address(`${origin}/mcp`, { isRequired: true })]);
  expect(opened.problems).toEqual([
    { server: 'remote', message: expect.stringContaining('remote (a test) did not start') as string, isFatal: true },
  ]);
});

test('a server that answers nothing is given up within its limit', async () => {
  const { origin } = await Listener.open(() => undefined);
  const { opened } = await desk([address(`${origin}/mcp`, { startMs: 400 })]);
  expect(opened.problems.map(({ message }) => message)).toEqual([
    expect.stringContaining('did not start: it did not answer within 400 ms'),
  ]);
});
