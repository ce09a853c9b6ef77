// Plain HTTP through the proxy: each request decided anew, headers and framing written anew, nothing smuggled.

import { statSync } from 'node:fs';
import { openSandboxProxy } from '@drover/sandbox/net/proxy';
import { expect, test } from 'vitest';
import { ask, client, get, parseAnswer, proxyFixture, readAll, readUntil, site, tcpSite } from './proxy-fixture.ts';

const rulesFor = (port: number): string[] => [`mirror.example.com:${port}`, `127.0.0.1:${port}`];

test('an allowed request arrives with the parsed host and without hop-by-hop headers', async () => {
  const { port, seen } = await site();
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const answer = await ask(
    proxy,
    [
      `POST http://Mirror.example.com.:${port}/a?b=c HTTP/1.1`,
      'Host: evil.example',
      'Host: evil2.example',
      'Proxy-Authorization: Basic c2VjcmV0',
      'Proxy-Connection: keep-alive',
      'Connection: X-Listed, keep-alive',
      'X-Listed: gone',
      'TE: trailers',
      'Cookie: a=1',
      'Cookie: b=2',
      'Content-Length: 4',
    ],
    'body',
  );
  expect(answer).toMatchObject({ status: 200, body: expect.stringContaining('site /a?b=c') });
  expect(seen).toEqual([
    {
      method: 'POST',
      url: '/a?b=c',
      headers: [
        'host',
        `mirror.example.com:${port}`,
        'connection',
        'close',
        'content-length',
        '4',
        'Cookie',
        'a=1',
        'Cookie',
        'b=2',
      ],
      body: 'body',
    },
  ]);
  expect(proxy.connections).toEqual([{ host: 'mirror.example.com', port, allowed: true }]);
});

test('a forbidden host is refused within a second, naming host and rule', async () => {
  const proxy = await proxyFixture({ rules: ['mirror.example.com'] });
  const before = performance.now();
  const answer = await get(proxy, 'http://evil.example/x');
  expect(performance.now() - before).toBeLessThan(1_000);
  const sentence = 'drover: the sandbox does not allow evil.example; allow it with --net evil.example';
  expect(answer).toEqual({ status: 403, phrase: sentence, body: `${sentence}\n` });
});

test('the second request of a kept-alive connection is decided anew', async () => {
  const { port, seen } = await site();
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const socket = await client(proxy);
  socket.write(`GET http://mirror.example.com:${port}/1 HTTP/1.1\r\nHost: x\r\n\r\n`);
  await readUntil(socket, 'site /1');
  socket.write(`GET http://evil.example:${port}/2 HTTP/1.1\r\nHost: mirror.example.com\r\n\r\n`);
  expect(parseAnswer(await readAll(socket)).status).toBe(403);
  expect(seen.map(({ url }) => url)).toEqual(['/1']);
  expect(proxy.connections.map(({ host, allowed }) => [host, allowed])).toEqual([
    ['mirror.example.com', true],
    ['evil.example', false],
  ]);
});

test('a kept-alive connection serves many requests in a row', async () => {
  const { port, seen } = await site();
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const socket = await client(proxy);
  for (let count = 0; count < 200; count += 1) {
    socket.write(`GET http://mirror.example.com:${port}/${count} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await readUntil(socket, `site /${count}`);
  }
  expect(seen).toHaveLength(200);
});

test('a pipelined request is refused after the answer to the first', async () => {
  const { port, seen } = await site();
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const socket = await client(proxy);
  const line = (path: string) => `GET http://mirror.example.com:${port}/${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  socket.write(line('1') + line('2'));
  const text = await readAll(socket);
  expect(text).toMatch(/^HTTP\/1\.1 200 [^]*site \/1[^]*HTTP\/1\.1 400 drover: the proxy of the sandbox does not take/);
  expect(seen.map(({ url }) => url)).toEqual(['/1']);
});

const SMUGGLED: readonly [string, string[], string][] = [
  ['two lengths', ['Content-Length: 4', 'Content-Length: 5'], 'abcde'],
  [
    'a length and chunks',
    ['Content-Length: 4', 'Transfer-Encoding: chunked'],
    '0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n',
  ],
  ['chunks and a length', ['Transfer-Encoding: chunked', 'Content-Length: 4'], '0\r\n\r\n'],
  ['two codings', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], '0\r\n\r\n'],
  ['an unknown coding', ['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'],
  ['a hidden coding', ['Transfer-Encoding : chunked'], '0\r\n\r\n'],
  ['a folded header', ['X-A: b', ' Transfer-Encoding: chunked'], '0\r\n\r\n'],
  ['a signed length', ['Content-Length: +4'], 'abcd'],
  ['a bare newline', ['X-A: b\nX-B: c'], ''],
  ['a NUL in a header', ['X-A: b\u0000c'], ''],
  ['an upgrade', ['Connection: Upgrade', 'Upgrade: websocket'], ''],
];

test.each(SMUGGLED)('a request with %s reaches no server', async (_, headers, body) => {
  const { port, seen } = await site();
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const lines = [`POST http://mirror.example.com:${port}/ HTTP/1.1`, 'Host: x', ...headers];
  const { status, phrase } = await ask(proxy, lines, body);
  expect([400, 501]).toContain(status);
  expect(phrase).toMatch(/^drover: /);
  expect(seen).toEqual([]);
});

test('a chunked body is written anew in chunks', async () => {
  const { port, seen } = await site();
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const lines = [`GET http://mirror.example.com:${port}/ HTTP/1.1`, 'Host: x', 'Transfer-Encoding: chunked'];
  await ask(proxy, lines, '4;ext=1\r\nbody\r\n0\r\nX-Trailer: 1\r\n\r\n');
  expect(seen[0]).toMatchObject({ body: 'body', headers: expect.arrayContaining(['transfer-encoding', 'chunked']) });
});

const NOT_TARGETS = [
  '/origin-form',
  '*',
  'https://mirror.example.com/',
  'ftp://mirror.example.com/',
  'http://',
  'http:///x',
  'http://user@mirror.example.com/',
  'http://evil.example\\@mirror.example.com/',
  'http://evil.example#@mirror.example.com/',
  'http://evil.example%00.mirror.example.com/',
  'http://evil.example\u0000.mirror.example.com/',
  'http://evil.example%0d%0a.mirror.example.com/',
  'http://b\u00fccher.example/',
  'http://mirror.example.com:99999/',
  'http://[::1%25lo]/',
  'http://mirror.example.com/#fragment',
];

test.each(NOT_TARGETS)('the request target %j is refused and never resolved', async (url) => {
  const asked: string[] = [];
  const resolve = (host: string) => (asked.push(host), Promise.resolve(['127.0.0.1']));
  const proxy = await proxyFixture({ rules: ['mirror.example.com', '*.mirror.example.com'], resolve });
  const { status, phrase } = await get(proxy, url);
  expect(status).toBe(400);
  expect(phrase).toMatch(/^drover: [ -~]+$/);
  expect(asked).toEqual([]);
  expect(proxy.connections.every(({ allowed, host }) => !allowed && /^[!-~]*$/.test(host))).toBe(true);
});

test('a refusal has at most 500 characters, however long the host is', async () => {
  const proxy = await proxyFixture({ rules: ['mirror.example.com'] });
  const host = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(62)).join('.');
  const { status, phrase, body } = await get(proxy, `http://${host}/`);
  const sentence = `the sandbox does not allow ${host}; allow it with --net ${host}`.slice(0, 500);
  expect({ status, phrase, body }).toEqual({
    status: 403,
    phrase: `drover: ${sentence}`,
    body: `drover: ${sentence}\n`,
  });
});

test('a host with a line break cannot end the request line', async () => {
  const proxy = await proxyFixture({ rules: ['mirror.example.com'] });
  expect((await get(proxy, 'http://evil.example\r\nX: .mirror.example.com/')).status).toBe(400);
});

test('the response passes without its hop-by-hop headers, duplicates kept', async () => {
  const { port } = await site((_, response) => {
    const listed = [
      'Connection',
      'X-Listed',
      'X-Listed',
      'gone',
      'Proxy-Authenticate',
      'Basic',
      'Keep-Alive',
      'timeout=1',
    ];
    response.writeHead(203, 'Fine', ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', ...listed]).end('body');
  });
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const socket = await client(proxy);
  socket.write(`GET http://mirror.example.com:${port}/ HTTP/1.0\r\n\r\n`);
  const text = await readAll(socket);
  expect(text).toMatch(/^HTTP\/1\.1 203 Fine\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n/);
  expect(text).not.toMatch(/listed|proxy-auth|timeout/i);
  expect(text).toMatch(/\r\n\r\nbody$/);
});

const BAD_RESPONSES: readonly [string, string][] = [
  ['no HTTP', 'SSH-2.0-OpenSSH\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['an unasked upgrade', 'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'],
  ['huge headers', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`],
  ['nothing', ''],
];

test.each(BAD_RESPONSES)('a target that answers with %s gives a 502', async (_, text) => {
  const port = await tcpSite((remote) => void remote.once('data', () => remote.end(text)));
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const { status, phrase } = await get(proxy, `http://mirror.example.com:${port}/`);
  expect({ status, phrase }).toEqual({
    status: 502,
    phrase: `drover: mirror.example.com:${port} did not send a valid response`,
  });
});

test('a response that breaks off is cut off for the client too', async () => {
  const port = await tcpSite((remote) => {
    remote.once('data', () => remote.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'));
  });
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const { status, body } = await get(proxy, `http://mirror.example.com:${port}/`);
  expect({ status, body }).toEqual({ status: 200, body: 'half' });
});

test('a response whose chunks become invalid is cut off', async () => {
  const port = await tcpSite((remote) => {
    remote.once('data', () => {
      remote.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n');
      setTimeout(() => remote.write('no chunk\r\n'), 50);
    });
  });
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const { status, body } = await get(proxy, `http://mirror.example.com:${port}/`);
  expect({ status, body }).toEqual({ status: 200, body: '4\r\ngood\r\n' });
});

test('a client that gives up waiting takes its request with it', async () => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  const { promise: gone, resolve: leave } = Promise.withResolvers<void>();
  const port = await tcpSite((remote) => void remote.once('data', arrive).once('end', leave));
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const socket = await client(proxy);
  socket.write(`GET http://mirror.example.com:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await arrived;
  socket.destroy();
  await gone;
});

test('headers over the bound are refused', async () => {
  const proxy = await proxyFixture({ rules: ['mirror.example.com'] });
  const answer = await ask(proxy, ['GET http://mirror.example.com/ HTTP/1.1', `X: ${'x'.repeat(40_000)}`]);
  expect(answer).toMatchObject({ status: 431, phrase: 'drover: the headers of the request are too large' });
});

test('a framing header behind thousands of others is still obeyed', async () => {
  const { port, seen } = await site();
  const proxy = await proxyFixture({ rules: rulesFor(port) });
  const padding = Array.from({ length: 2_100 }, () => 'X:y');
  const lines = [`POST http://mirror.example.com:${port}/ HTTP/1.1`, 'Host: x', ...padding, 'Content-Length: 4'];
  expect(await ask(proxy, lines, 'body')).toMatchObject({ status: 200 });
  expect(seen.map(({ body }) => body)).toEqual(['body']);
});

test('the socket belongs to its user only, and a taken path is an error', async () => {
  const proxy = await proxyFixture({ rules: [] });
  expect(statSync(proxy.socket).mode & 0o777).toBe(0o600);
  const second = openSandboxProxy({ rules: [], socket: proxy.socket, onConnection: () => undefined });
  await expect(second).rejects.toThrow('EADDRINUSE');
});
