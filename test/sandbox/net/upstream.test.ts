// An upstream proxy: allowed targets go through the user's own proxy, by name; the rules still decide here.

import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { get, proxyFixture, readAll, refusedConnect, site, tunnel } from './proxy-fixture.ts';

type Corporate = { readonly url: string; readonly asked: string[] };

/** Sends every target to the site, whatever its name. */
async function corporateProxy(sitePort: number): Promise<Corporate> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers['proxy-authorization']}`);
    response.end('through the upstream');
  });
  server.on('connect', (request, client) => {
    asked.push(`CONNECT ${request.url} ${request.headers['proxy-authorization']}`);
    if (request.url?.startsWith('denied') === true) return void client.end('HTTP/1.1 407 No\r\n\r\n');
    client.write('HTTP/1.1 200 OK\r\n\r\n');
    client.pipe(connect(sitePort, '127.0.0.1')).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  return { url: `http://me:p%40ss@127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const CREDENTIALS = `Basic ${Buffer.from('me:p@ss').toString('base64')}`;
const unresolved = () => Promise.reject(new Error('resolved'));

test('CONNECT reaches an allowed host through the upstream by name', async () => {
  const { port } = await site();
  const upstream = await corporateProxy(port);
  const proxy = await proxyFixture({ rules: ['a.example.com'], upstream: upstream.url, resolve: unresolved });
  const socket = await tunnel(proxy, 'a.example.com:443');
  socket.write('GET /far HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await readAll(socket)).toContain('site /far');
  expect(upstream.asked).toEqual([`CONNECT a.example.com:443 ${CREDENTIALS}`]);
});

test('plain HTTP reaches an allowed host through the upstream in absolute form', async () => {
  const upstream = await corporateProxy(0);
  const proxy = await proxyFixture({ rules: ['a.example.com'], upstream: upstream.url, resolve: unresolved });
  expect((await get(proxy, 'http://A.example.com/x?y')).body).toContain('through the upstream');
  expect(upstream.asked).toEqual([`GET http://a.example.com/x?y ${CREDENTIALS}`]);
});

test('the upstream never hears of a host that no rule permits', async () => {
  const upstream = await corporateProxy(0);
  const proxy = await proxyFixture({ rules: ['a.example.com'], upstream: upstream.url });
  expect((await refusedConnect(proxy, 'evil.example:443')).status).toBe(403);
  expect((await get(proxy, 'http://169.254.169.254/')).status).toBe(403);
  expect(upstream.asked).toEqual([]);
});

test('loopback targets do not go through the upstream', async () => {
  const { port } = await site();
  const upstream = await corporateProxy(0);
  const rules = [`localhost:${port}`, `127.0.0.1:${port}`];
  const proxy = await proxyFixture({ rules, upstream: upstream.url });
  expect((await get(proxy, `http://localhost:${port}/near`)).body).toContain('site /near');
  expect((await get(proxy, `http://127.0.0.1:${port}/near`)).body).toContain('site /near');
  expect(upstream.asked).toEqual([]);
});

test('a refusal of the upstream is a 502 that says so', async () => {
  const upstream = await corporateProxy(0);
  const proxy = await proxyFixture({ rules: ['denied.example.com'], upstream: upstream.url });
  expect((await refusedConnect(proxy, 'denied.example.com:443')).phrase).toBe(
    'drover: cannot reach denied.example.com:443 through the upstream proxy (status 407)',
  );
});

test.each(['https://proxy.example.com', 'proxy.example.com:3128', 'socks5://proxy.example.com', ''])(
  'the upstream %j is refused at the start',
  async (upstream) => {
    await expect(proxyFixture({ rules: [], upstream })).rejects.toThrow(
      'The upstream proxy must be an http:// URL, for example http://proxy.example.com:3128',
    );
  },
);
