// A proxy on a Unix socket, real HTTP servers on loopback behind it, and clients that write bytes by hand.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseHostRule } from '@drover/sandbox/net/hosts';
import { type Connection, openSandboxProxy, type ProxyOptions } from '@drover/sandbox/net/proxy';
import { onTestFinished } from 'vitest';

export type ProxyFixture = {
  readonly socket: string;
  readonly connections: Connection[];
  readonly close: () => Promise<void>;
};

type Settings = Partial<Omit<ProxyOptions, 'rules' | 'socket'>> & { readonly rules: readonly string[] };

/** Every name resolves to 127.0.0.1, unless the test says otherwise. */
export async function proxyFixture({ rules, ...options }: Settings): Promise<ProxyFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'drover-net-'));
  const socket = join(folder, 'proxy');
  const connections: Connection[] = [];
  const proxy = await openSandboxProxy({
    rules: rules.map(parseHostRule),
    socket,
    onConnection: (connection) => connections.push(connection),
    resolve: () => Promise.resolve(['127.0.0.1']),
    ...options,
  });
  onTestFinished(async () => {
    await proxy.close();
    rmSync(folder, { recursive: true });
  });
  return { socket, connections, close: proxy.close };
}

type Seen = { readonly method: string; readonly url: string; readonly headers: string[]; readonly body: string };
export type Site = { readonly port: number; readonly seen: Seen[] };

/** A site that remembers each request and answers with its path. */
export async function site(answer?: RequestListener, host = '127.0.0.1'): Promise<Site> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const { method = '', url = '', rawHeaders } = request;
    const serve = (body: string): void => {
      seen.push({ method, url, headers: rawHeaders, body });
      if (answer === undefined) response.end(`site ${url}`);
      else answer(request, response);
    };
    bodyOf(request).then(serve, () => response.destroy());
  });
  server.maxHeadersCount = 0;
  onTestFinished(() => server.closeAllConnections());
  return { port: await listenOn(server, host), seen };
}

/** A TCP server that hands each connection to the test. */
export async function tcpSite(serve: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket.on('error', () => socket.destroy()));
    serve(socket);
  });
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  return listenOn(server, '127.0.0.1');
}

async function listenOn(server: Server, host: string): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** A client of the proxy, open until the test ends. */
export async function client({ socket }: { readonly socket: string }): Promise<Socket> {
  const opened = connect({ path: socket, allowHalfOpen: true });
  opened.on('error', () => opened.destroy());
  onTestFinished(() => void opened.destroy());
  await once(opened, 'connect');
  return opened;
}

/** Everything that arrives until the proxy closes the connection. */
export async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).resume();
  if (!socket.destroyed) await new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
  return Buffer.concat(chunks).toString('latin1');
}

/** Reads until the text has arrived; later bytes stay in the socket. */
export async function readUntil(socket: Socket, text: string): Promise<string> {
  let read = '';
  for (;;) {
    const chunk = socket.read() as Buffer | null;
    read += chunk?.toString('latin1') ?? '';
    const end = read.indexOf(text) + text.length;
    if (end >= text.length) {
      if (end < read.length) socket.unshift(Buffer.from(read.slice(end), 'latin1'));
      return read.slice(0, end);
    }
    if (chunk === null) await once(socket, 'readable');
  }
}

export type Answer = { readonly status: number; readonly phrase: string; readonly body: string };

/** Sends one request that asks for the connection to be closed, and reads the answer. */
export async function ask(proxy: ProxyFixture, lines: readonly string[], body = ''): Promise<Answer> {
  const socket = await client(proxy);
  socket.write(`${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`, 'latin1');
  return parseAnswer(await readAll(socket));
}

export const get = (proxy: ProxyFixture, url: string): Promise<Answer> =>
  ask(proxy, [`GET ${url} HTTP/1.1`, 'Host: ignored.example.com']);

export const refusedConnect = (proxy: ProxyFixture, authority: string): Promise<Answer> =>
  ask(proxy, [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`]);

/** Opens a tunnel and returns it once the proxy has agreed. */
export async function tunnel(proxy: ProxyFixture, authority: string): Promise<Socket> {
  const socket = await client(proxy);
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  const head = await readUntil(socket, '\r\n\r\n');
  if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(head);
  return socket;
}

export function parseAnswer(text: string): Answer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [, status = '0', phrase = ''] = /^HTTP\/1\.1 (\d+) (.*)/.exec(head) ?? [];
  return { status: Number(status), phrase, body: rest.join('\r\n\r\n') };
}
