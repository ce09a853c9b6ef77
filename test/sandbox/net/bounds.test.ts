// The proxy under load and hostile clients: bounded, without leaks, and closed for good.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { doHostRulesPermit, parseHostRule, parseHostTarget } from '@drover/sandbox/net/hosts';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  client,
  get,
  parseAnswer,
  proxyFixture,
  readAll,
  refusedConnect,
  site,
  tcpSite,
  tunnel,
} from './proxy-fixture.ts';
import { until } from '../../support/until.ts';

test('of 300 concurrent tunnels 256 open and the rest get a sentence', async () => {
  const port = await tcpSite((remote) => void remote.pipe(remote));
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`] });
  const opened = await Promise.allSettled(Array.from({ length: 300 }, () => tunnel(proxy, `127.0.0.1:${port}`)));
  const tunnels = opened.filter((each) => each.status === 'fulfilled').map(({ value }) => value);
  const refused = opened.filter((each) => each.status === 'rejected').map(({ reason }) => String(reason));
  expect(tunnels).toHaveLength(256);
  expect(refused).toHaveLength(44);
  expect(new Set(refused.map((text) => /HTTP.*/.exec(text)?.[0]))).toEqual(
    new Set(['HTTP/1.1 503 drover: the sandbox has more than 256 connections open']),
  );
  for (const each of tunnels) each.end();
  await Promise.all(tunnels.map(readAll));
  expect((await tunnel(proxy, `127.0.0.1:${port}`)).destroyed).toBe(false);
});

test('300 concurrent requests over 100 connections all get the right answer', async () => {
  const { port } = await site();
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`] });
  const batch = Array.from({ length: 100 }, (_, index) => index);
  for (const round of [1, 2, 3]) {
    const answers = await Promise.all(batch.map((index) => get(proxy, `http://127.0.0.1:${port}/${round}/${index}`)));
    answers.forEach(({ body }, index) => expect(body).toContain(`site /${round}/${index}`));
  }
});

test('a client that sends half a request is told so and dropped', async () => {
  const proxy = await proxyFixture({ rules: [], bounds: { headersMs: 100 } });
  const socket = await client(proxy);
  socket.write('GET http://a.example.com/ HTTP/1.1\r\nHost:');
  expect(parseAnswer(await readAll(socket))).toMatchObject({
    status: 408,
    phrase: 'drover: the request took too long to arrive',
  });
});

test('clients that half-close or reset at any point leave the proxy working', async () => {
  const { port } = await site((_, response) => void setTimeout(() => response.end('late'), 5));
  const proxy = await proxyFixture({ rules: [`127.0.0.1:${port}`] });
  const whole = `POST http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody`;
  const connecting = `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n`;
  for (const text of [whole, connecting])
    for (let length = 0; length <= text.length; length += 7) {
      const ended = await client(proxy);
      ended.end(text.slice(0, length));
      const destroyed = await client(proxy);
      destroyed.write(text.slice(0, length), () => destroyed.destroy());
      ended.resume();
    }
  await sleep(50);
  expect((await get(proxy, `http://127.0.0.1:${port}/`)).status).toBe(200);
});

test('close destroys idle, waiting, tunnelling and dialling connections', async () => {
  const remotes: Socket[] = [];
  const port = await tcpSite((remote) => void remotes.push(remote.resume()));
  const { promise: stuck, resolve: answer } = Promise.withResolvers<string[]>();
  const rules = [`127.0.0.1:${port}`, `slow.example.com:${port}`];
  const proxy = await proxyFixture({ rules, resolve: () => stuck });
  const idle = await client(proxy);
  const tunnelling = await tunnel(proxy, `127.0.0.1:${port}`);
  const [waiting, dialling] = [await client(proxy), await client(proxy)];
  waiting.write(`GET http://127.0.0.1:${port}/never HTTP/1.1\r\nHost: x\r\n\r\n`);
  dialling.write(`CONNECT slow.example.com:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const ends = [idle, tunnelling, waiting, dialling].map(readAll);
  await until(() => remotes.length >= 2);
  const remoteEnds = remotes.map((remote) => once(remote, 'end'));
  await proxy.close();
  expect(await Promise.all(ends)).toEqual(['', '', '', '']);
  await Promise.all(remoteEnds);
  answer(['127.0.0.1']);
  await sleep(50);
  expect({ remotes: remotes.length, socket: existsSync(proxy.socket) }).toEqual({ remotes: 2, socket: false });
  expect(proxy.connections).toHaveLength(2);
});

test('a second close does nothing more', async () => {
  const proxy = await proxyFixture({ rules: [] });
  await proxy.close();
  await proxy.close();
});

const RULES = ['mirror.example.com', '*.wild.example.com'];
const noise = fc.constantFrom(
  '',
  'a.',
  '.',
  'evil.example',
  '@',
  '%00',
  '\\',
  '\u0000',
  '/',
  '#',
  '?',
  '\r\n',
  ' ',
  'é',
);
const host = fc.constantFrom('mirror.example.com', 'wild.example.com', 'a.WILD.example.com', 'evil.example', '127.1');
const authorities = fc.tuple(noise, host, noise, fc.constantFrom(':443', ':80', '')).map((parts) => parts.join(''));

test('the proxy resolves only hosts whose parsed form a rule permits', async () => {
  const asked: string[] = [];
  const resolve = (name: string) => (asked.push(name), Promise.resolve([]));
  const proxy = await proxyFixture({ rules: RULES, resolve });
  const rules = RULES.map(parseHostRule);
  const property = fc.asyncProperty(authorities, fc.boolean(), async (authority, plain) => {
    asked.length = 0;
    await (plain ? get(proxy, `http://${authority}/`) : refusedConnect(proxy, authority));
    for (const name of asked) expect(doHostRulesPermit(rules, parseHostTarget(`${name}:443`))).toBe(true);
  });
  await fc.assert(property, { numRuns: 300 });
  expect(proxy.connections.filter(({ allowed }) => allowed).length).toBeGreaterThan(0);
});
