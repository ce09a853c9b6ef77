// CONNECT through the proxy: allowed hosts get a byte tunnel, all others a 403 that says what to allow.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { client, proxyFixture, readAll, readUntil, refusedConnect, site, tcpSite, tunnel } from './proxy-fixture.ts';

test('CONNECT tunnels to an allowed host and reports it once', async () => {
  const { port } = await site();
  const proxy = await proxyFixture({ rules: [`mirror.example.com:${port}`, `127.0.0.1:${port}`] });
  const socket = await tunnel(proxy, `Mirror.Example.COM.:${port}`);
  socket.write('GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await readAll(socket)).toContain('site /hello');
  expect(proxy.connections).toEqual([{ host: 'mirror.example.com', port, allowed: true }]);
});

test('CONNECT to another host is refused within a second, naming host and rule', async () => {
  const proxy = await proxyFixture({ rules: ['mirror.example.com'] });
  const before = performance.now();
  const answer = await refusedConnect(proxy, 'evil.example:443');
  expect(performance.now() - before).toBeLessThan(1_000);
  const sentence = 'drover: the sandbox does not allow evil.example; allow it with --net evil.example';
  expect(answer).toEqual({ status: 403, phrase: sentence, body: `${sentence}\n` });
  expect(proxy.connections).toEqual([
    { host: 'evil.example', port: 443, allowed: false, reason: sentence.slice('drover: '.length) },
  ]);
});

test('a refusal names the port where the rule needs one', async () => {
  const proxy = await proxyFixture({ rules: ['mirror.example.com'] });
  const answer = await refusedConnect(proxy, 'mirror.example.com:8443');
  expect(answer.body).toContain('allow it with --net mirror.example.com:8443');
  expect((await refusedConnect(proxy, '[::1]:8080')).body).toContain('allow it with --net [::1]:8080');
});

test('a name that no rule permits is never resolved', async () => {
  const asked: string[] = [];
  const resolve = (host: string) => (asked.push(host), Promise.resolve(['127.0.0.1']));
  const proxy = await proxyFixture({ rules: ['mirror.example.com'], resolve });
  await refusedConnect(proxy, 'secret-in-a-name.evil.example:443');
  await refusedConnect(proxy, 'mirror.example.com:443');
  expect(asked).toEqual(['mirror.example.com']);
});

test('a public name that resolves to loopback is refused with the reason', async () => {
  const { port, seen } = await site();
  const proxy = await proxyFixture({ rules: [`rebind.example.com:${port}`] });
  const { status, body } = await refusedConnect(proxy, `rebind.example.com:${port}`);
  expect(status).toBe(403);
  expect(body).toBe(
    'drover: the sandbox does not allow rebind.example.com: it resolves to 127.0.0.1, a loopback address; ' +
      `allow it with --net 127.0.0.1:${port}\n`,
  );
  expect(seen).toEqual([]);
});

test.each([['169.254.169.254'], ['::ffff:169.254.169.254'], ['fd00:ec2::254'], ['64:ff9b::a9fe:a9fe']])(
  'a name that resolves to the metadata address %s is refused',
  async (address) => {
    const proxy = await proxyFixture({
      rules: ['*.example.com'],
      resolve: () => Promise.resolve(['8.8.8.8', address]),
    });
    const { status, body } = await refusedConnect(proxy, 'metadata.example.com:80');
    expect({ status, body }).toEqual({ status: 403, body: expect.stringContaining('a metadata address') });
  },
);

test('the address that was checked is the one that is dialled', async () => {
  const { port, seen } = await site();
  const answers = [['127.0.0.1'], ['127.0.0.2'], ['127.0.0.2']];
  const resolve = () => Promise.resolve(answers.shift() ?? []);
  const proxy = await proxyFixture({ rules: [`a.example.com:${port}`, `127.0.0.1:${port}`], resolve });
  const socket = await tunnel(proxy, `a.example.com:${port}`);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await readAll(socket);
  expect({ requests: seen.length, unasked: answers.length }).toEqual({ requests: 1, unasked: 2 });
});

test('localhost in a rule reaches loopback without asking a resolver', async () => {
  const { port } = await site();
  const resolve = () => Promise.reject(new Error('asked'));
  const proxy = await proxyFixture({ rules: [`localhost:${port}`], resolve });
  const socket = await tunnel(proxy, `localhost:${port}`);
  socket.write('GET /here HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await readAll(socket)).toContain('site /here');
});

test('unusual spellings of an address are decided and dialled as that address', async () => {
  const { port } = await site();
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`] });
  for (const host of ['127.1', '0x7f.0.0.1', '2130706433']) await tunnel(proxy, `${host}:${port}`);
  expect(proxy.connections.map(({ host }) => host)).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1']);
  expect((await refusedConnect(proxy, `[::ffff:127.0.0.1]:${port}`)).status).toBe(403);
});

test('an IPv6 target is dialled as named', async () => {
  const { port } = await site(undefined, '::1');
  const proxy = await proxyFixture({ rules: [`[::1]:${port}`] });
  const socket = await tunnel(proxy, `[0:0:0:0:0:0:0:1]:${port}`);
  socket.write('GET /six HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await readAll(socket)).toContain('site /six');
});

test('a CONNECT with a body is refused', async () => {
  const proxy = await proxyFixture({ rules: ['mirror.example.com'] });
  const socket = await client(proxy);
  socket.write('CONNECT mirror.example.com:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc');
  expect(await readAll(socket)).toContain('400 drover: a CONNECT request has no body');
});

test('bytes sent with the CONNECT arrive, and a half-close passes in both directions', async () => {
  let received = '';
  const port = await tcpSite((remote) => {
    remote.on('data', (chunk: Buffer) => (received += chunk.toString()));
    remote.on('end', () => remote.end(`got ${received}`));
  });
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`] });
  const socket = await client(proxy);
  socket.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\nearly `);
  await readUntil(socket, '\r\n\r\n');
  socket.end('late');
  expect(await readAll(socket)).toBe('got early late');
});

test('a target that has ended its side still receives', async () => {
  const { promise: received, resolve } = Promise.withResolvers<string>();
  const port = await tcpSite((remote) => {
    remote.end('bye');
    void readAll(remote).then(resolve);
  });
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`] });
  const socket = await tunnel(proxy, `127.0.0.1:${port}`);
  expect(await readAll(socket)).toBe('bye');
  socket.end('after the end');
  expect(await received).toBe('after the end');
});

test('a client that never reads is dropped, and its place is free again', async () => {
  const port = await tcpSite((remote) => void remote.resume().write(Buffer.alloc(8 * 1024 * 1024)));
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`], bounds: { idleMs: 200, connectionsMax: 1 } });
  await tunnel(proxy, `127.0.0.1:${port}`);
  await expect(tunnel(proxy, `127.0.0.1:${port}`)).rejects.toThrow('503');
  await vi.waitFor(() => tunnel(proxy, `127.0.0.1:${port}`), { timeout: 5_000, interval: 50 });
});

test('a large transfer arrives whole after the sender has closed', async () => {
  const bytes = Buffer.alloc(8 * 1024 * 1024, 'x');
  const port = await tcpSite((remote) => remote.resume().end(bytes));
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`] });
  const socket = await tunnel(proxy, `127.0.0.1:${port}`);
  await sleep(50);
  expect((await readAll(socket)).length).toBe(bytes.length);
});

test('a reset of the target closes the tunnel, and the proxy continues', async () => {
  const port = await tcpSite((remote) => void remote.once('data', () => remote.resetAndDestroy()));
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`] });
  const socket = await tunnel(proxy, `127.0.0.1:${port}`);
  socket.write('x');
  expect(await readAll(socket)).toBe('');
  expect((await tunnel(proxy, `127.0.0.1:${port}`)).destroyed).toBe(false);
});

test('a client that goes away takes its connection to the target with it', async () => {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const port = await tcpSite(
    (remote) =>
      void remote
        .resume()
        .once('close', resolve)
        .once('end', () => remote.end()),
  );
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`] });
  (await tunnel(proxy, `127.0.0.1:${port}`)).destroy();
  await gone;
});

test('a target that refuses or does not answer in time is named in a 502', async () => {
  const proxy = await proxyFixture({
    rules: ['127.0.0.1:1', 'slow.example.com'],
    bounds: { connectMs: 50 },
    resolve: stall,
  });
  expect((await refusedConnect(proxy, '127.0.0.1:1')).phrase).toBe('drover: cannot reach 127.0.0.1:1 (ECONNREFUSED)');
  expect((await refusedConnect(proxy, 'slow.example.com:443')).phrase).toBe(
    'drover: cannot resolve slow.example.com (no answer)',
  );
  expect(proxy.connections.map(({ allowed }) => allowed)).toEqual([true, true]);
});

const stall = (): Promise<string[]> => new Promise(() => undefined);

test('an idle tunnel is closed', async () => {
  const port = await tcpSite((remote) => void remote.resume());
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`], bounds: { idleMs: 100 } });
  const socket = await tunnel(proxy, `127.0.0.1:${port}`);
  expect(await readAll(socket)).toBe('');
});
