// The relay as a process of its own, and real clients that go through it by their environment.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseHostRule } from '@drover/sandbox/net/hosts';
import { environmentWithoutProxy, environmentWithProxy, proxyRelayArguments } from '@drover/sandbox/net/relay';
import { expect, onTestFinished, test } from 'vitest';
import { type ProxyFixture, proxyFixture, readAll, readUntil, site } from './proxy-fixture.ts';

/** A port without a listener. If another process takes it, the relay reports that. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function startRelay(args: string[]): Promise<ChildProcess> {
  const relay = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env: {} });
  onTestFinished(() => void relay.kill('SIGKILL'));
  let said = '';
  relay.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await once(relay.stdout, 'end');
  expect(said).toBe('ready\n');
  return relay;
}

type Way = ProxyFixture & { readonly relayPort: number; readonly relay: ChildProcess };

async function openWay(rules: readonly string[]): Promise<Way> {
  const proxy = await proxyFixture({ rules });
  const relayPort = await freePort();
  const relay = await startRelay(proxyRelayArguments(relayPort, proxy.socket));
  return { ...proxy, relayPort, relay };
}

const isInstalled = (program: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((folder) => globSync(join(folder, program)).length > 0);

type Ended = { readonly code: number | null; readonly output: string };

/** Runs a client with a box's environment and an empty home. */
async function run(program: string, args: readonly string[], environment: Record<string, string>): Promise<Ended> {
  const home = mkdtempSync(join(tmpdir(), 'drover-home-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  writeFileSync(join(home, 'package.json'), '{"name":"project","version":"1.0.0"}');
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, GIT_TERMINAL_PROMPT: '0', ...environment };
  const child = spawn(program, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

const throughRelay = ({ relayPort }: Way, program: string, args: readonly string[]): Promise<Ended> =>
  run(program, args, environmentWithProxy(relayPort));

test('the relay copies both ways, ignores HUP and INT, and ends when killed', async () => {
  const { port } = await site();
  const { relayPort, relay } = await openWay([`mirror.example.com:${port}`, `127.0.0.1:${port}`]);
  relay.kill('SIGHUP');
  relay.kill('SIGINT');
  const socket = connect(relayPort, '127.0.0.1');
  socket.write(`GET http://mirror.example.com:${port}/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(await readAll(socket)).toContain('site /x');
  relay.kill('SIGTERM');
  expect(await once(relay, 'exit')).toEqual([null, 'SIGTERM']);
});

test('the relay survives clients that reset', async () => {
  const { port } = await site();
  const { relayPort } = await openWay([`127.0.0.1:${port}`]);
  for (let count = 0; count < 20; count += 1) {
    const socket = connect(relayPort, '127.0.0.1').on('error', () => undefined);
    await once(socket, 'connect');
    socket.write('GET http');
    await sleep(5);
    socket.resetAndDestroy();
  }
  await sleep(100);
  const later = connect(relayPort, '127.0.0.1');
  later.write(`GET http://127.0.0.1:${port}/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(await readAll(later)).toContain('site /x');
});

test('the relay closes its clients when the proxy is gone', async () => {
  const way = await openWay([]);
  const open = connect(way.relayPort, '127.0.0.1').on('error', () => undefined);
  await once(open, 'connect');
  await way.close();
  expect(await readAll(open)).toBe('');
  expect(await readAll(connect(way.relayPort, '127.0.0.1').on('error', () => undefined))).toBe('');
  expect(way.relay.exitCode).toBeNull();
});

test('bytes that arrive together with the agreement of the proxy are not lost', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'drover-net-'));
  const path = join(folder, 'proxy');
  const agreeing = createTcpServer((socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\nbanner')).listen(path);
  onTestFinished(() => (agreeing.close(), rmSync(folder, { recursive: true })));
  const inside = await freePort();
  await startRelay([...proxyRelayArguments(await freePort(), path), `127.0.0.1,${inside},localhost:4873`]);
  expect(await readAll(connect(inside, '127.0.0.1'))).toBe('banner');
});

test('a relay that cannot listen says why and ends with status 1', async () => {
  const { port } = await site();
  const { code, output } = await run(process.execPath, proxyRelayArguments(port, '/nowhere'), {});
  expect({ code, output }).toEqual({
    code: 1,
    output: `drover relay: listen EADDRINUSE: address already in use 127.0.0.1:${port}\n`,
  });
});

test('a loopback rule with a port is served at the same port inside', async () => {
  const { port } = await site();
  const proxy = await proxyFixture({ rules: [`localhost:${port}`] });
  const args = proxyRelayArguments(await freePort(), proxy.socket);
  const inside = await freePort();
  await startRelay([...args, `127.0.0.1,${inside},localhost:${port}`]);
  const socket = connect(inside, '127.0.0.1');
  socket.write('GET /direct HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await readAll(socket)).toContain('site /direct');
  expect(proxy.connections).toEqual([{ host: 'localhost', port, allowed: true }]);
});

test('a forwarded port that the proxy refuses is closed', async () => {
  const proxy = await proxyFixture({ rules: [] });
  const inside = await freePort();
  await startRelay([...proxyRelayArguments(await freePort(), proxy.socket), `127.0.0.1,${inside},localhost:4873`]);
  expect(await readAll(connect(inside, '127.0.0.1').on('error', () => undefined))).toBe('');
  expect(proxy.connections).toMatchObject([{ host: 'localhost', allowed: false }]);
});

test('only loopback rules with an unprivileged port become forwards, each address once', () => {
  const texts = ['localhost:4873', '127.0.0.1:4873', '[::1]:8080', 'localhost', 'localhost:80', 'a.example.com:8080'];
  const args = proxyRelayArguments(3128, '/run/proxy', texts.map(parseHostRule));
  expect(args.slice(3)).toEqual(['3128', '/run/proxy', '127.0.0.1,4873,localhost:4873', '::1,8080,[::1]:8080']);
});

test('300 connections through the relay are all answered', async () => {
  const { port } = await site();
  const { relayPort } = await openWay([`127.0.0.1:${port}`]);
  const ask = async (): Promise<string> => {
    const socket = connect(relayPort, '127.0.0.1').on('error', () => undefined);
    socket.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const head = await readUntil(socket, '\r\n\r\n');
    onTestFinished(() => void socket.destroy());
    return head.slice(9, 12);
  };
  const codes = await Promise.all(Array.from({ length: 300 }, ask));
  expect(Object.entries(Object.groupBy(codes, String)).map(([code, all]) => [code, all?.length])).toEqual([
    ['200', 256],
    ['503', 44],
  ]);
});

test.runIf(isInstalled('curl'))('curl reaches an allowed host and is told about another', async () => {
  const { port } = await site();
  const way = await openWay([`mirror.example.com:${port}`, `127.0.0.1:${port}`]);
  const url = `http://mirror.example.com:${port}/pkg`;
  expect(await throughRelay(way, 'curl', ['-sS', url])).toMatchObject({ code: 0, output: 'site /pkg' });
  expect(await throughRelay(way, 'curl', ['-sS', '--proxytunnel', url])).toMatchObject({
    code: 0,
    output: 'site /pkg',
  });
  const { output } = await throughRelay(way, 'curl', ['-sS', 'http://evil.example/']);
  expect(output).toBe('drover: the sandbox does not allow evil.example; allow it with --net evil.example\n');
});

test.runIf(isInstalled('git'))('git names the host and the rule when it is refused', async () => {
  const way = await openWay([]);
  const { output } = await throughRelay(way, 'git', ['ls-remote', 'http://evil.example/x.git']);
  expect(output).toContain('drover: the sandbox does not allow evil.example; allow it with --net evil.example');
  const secure = await throughRelay(way, 'git', ['ls-remote', 'https://evil.example/x.git']);
  expect(secure.output).toMatch(/evil\.example.*403/);
});

test.runIf(isInstalled('npm'))('npm installs from an allowed registry and fails fast on another', async () => {
  const { port } = await site((request, response) => {
    if (request.url !== '/thing') return void response.writeHead(404).end('{}');
    response.setHeader('content-type', 'application/json').end(PACKUMENT);
  });
  const way = await openWay([`mirror.example.com:${port}`, `127.0.0.1:${port}`]);
  const registry = `--registry=http://mirror.example.com:${port}/`;
  const viewed = await throughRelay(way, 'npm', ['view', 'thing', 'version', registry]);
  expect(viewed.output).toContain('1.2.3');
  const refused = await throughRelay(way, 'npm', ['view', 'thing', '--registry=https://evil.example/']);
  expect(refused.output).toContain('403 drover: the sandbox does not allow evil.example; allow it with --net');
  // The client does not retry, so it fails at once.
  expect(way.connections.filter(({ host }) => host === 'evil.example')).toHaveLength(1);
});

const PACKUMENT = JSON.stringify({
  name: 'thing',
  'dist-tags': { latest: '1.2.3' },
  versions: { '1.2.3': { name: 'thing', version: '1.2.3', dist: { tarball: 'http://mirror.example.com/thing.tgz' } } },
});

test('fetch and https of Node go through the relay, and loopback does not', async () => {
  const { port } = await site();
  const way = await openWay([`mirror.example.com:${port}`, `127.0.0.1:${port}`]);
  const text = (url: string): Promise<Ended> =>
    throughRelay(way, process.execPath, ['-p', `fetch('${url}').then((r) => r.text()).then(console.log); ''`]);
  expect((await text(`http://mirror.example.com:${port}/far`)).output).toContain('site /far');
  expect((await text(`http://127.0.0.1:${port}/near`)).output).toContain('site /near');
  expect(way.connections).toEqual([{ host: 'mirror.example.com', port, allowed: true }]);
});

test('the environments set no Yarn variable that Yarn does not know', () => {
  const known = ['YARN_HTTP_RETRY', 'YARN_ENABLE_TELEMETRY', 'YARN_HTTP_PROXY', 'YARN_HTTPS_PROXY'];
  const names = Object.keys({ ...environmentWithProxy(3128), ...environmentWithoutProxy() });
  expect(names.filter((name) => /^yarn_/i.test(name) && !known.includes(name))).toEqual([]);
});

test('every proxy variable of the box has a lower-case twin', () => {
  const environment = environmentWithProxy(3128);
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'])
    expect(environment[name.toLowerCase()]).toBe(environment[name]);
});

test('without a network no client retries and none is sent to a proxy', () => {
  const environment = environmentWithoutProxy();
  const retries = Object.entries(environment).filter(([name]) => /retr(y|ies)$/i.test(name));
  expect(retries.length).toBeGreaterThan(3);
  expect(retries.filter(([, value]) => value !== '0')).toEqual([]);
  expect(Object.keys(environment).filter((name) => /proxy/i.test(name))).toEqual([]);
});
