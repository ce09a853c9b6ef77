// Listens on a socket and applies the bounds that only a socket has: the number of connections, the size and
// duration of headers and bodies, and how long a client may stall.

import { createServer, type Server, STATUS_CODES, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import type { App } from '../app.ts';
import { isEveryHttpAddress } from './guard.ts';
import { Refusal } from './problem.ts';

export type SocketBounds = {
  readonly connectionsMax: number;
  readonly headerBytesMax: number;
  readonly headersMs: number; // all headers are there by then
  readonly requestMs: number; // and the body
  readonly stalledMs: number; // without a byte either way
};

const SOCKET_BOUNDS: SocketBounds = {
  connectionsMax: 2_048,
  headerBytesMax: 16 * 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  stalledMs: 60_000,
};

// Connections over the bound that get an answer; the server closes those beyond without one.
const REFUSED_MAX = 64;
const HEADERS_MAX = 100;
const CLOSE_MS_MAX = 2_000;

export type Address = { readonly address: string; readonly port: number /* 0: any that is free */ };

export type Listening = {
  readonly address: string;
  readonly port: number;
  readonly url: string;
  /** Interrupts running work, ends all streams and accepts no more connections. */
  readonly close: () => Promise<void>;
};

/** Listens at the address. Throws the system's error if the address cannot be used. */
export async function listenForHttp(
  app: App,
  { address, port }: Address,
  bounds: Partial<SocketBounds> = {},
): Promise<Listening> {
  const server = makeHttpServer(app, { ...SOCKET_BOUNDS, ...bounds });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, address, resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  await app.start();
  const reached = isEveryHttpAddress(address) ? '127.0.0.1' : address;
  const name = reached.includes(':') ? `[${reached}]` : reached;
  return { address, port: taken, url: `http://${name}:${taken}`, close: () => closeHttpServer(server, app) };
}

function makeHttpServer(app: App, bounds: SocketBounds): Server {
  const { connectionsMax, headerBytesMax, headersMs, requestMs, stalledMs } = bounds;
  const answer = getRequestListener((request) => app.fetch(request), {
    overrideGlobalObjects: false,
    hostname: 'nobody.invalid', // where a request names none; the guard refuses it
    errorHandler: () => MALFORMED.response,
  });
  const responses = new WeakMap<object, ServerResponse>();
  const server = createServer(
    {
      maxHeaderSize: headerBytesMax,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.min(1_000, headersMs / 2),
      requireHostHeader: false,
    },
    (request, response) => {
      responses.set(request.socket, response);
      void answer(request, response);
    },
  );
  server.maxHeadersCount = HEADERS_MAX;
  server.maxConnections = connectionsMax + REFUSED_MAX;
  server.setTimeout(stalledMs);
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    socket.once('close', () => (connections -= 1));
    if (connections > connectionsMax) refuseHttpSocket(socket, TOO_MANY);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (responses.get(socket)?.headersSent === true || !socket.writable) socket.destroy();
    else refuseHttpSocket(socket, REFUSALS[error.code ?? ''] ?? MALFORMED);
  });
  return server;
}

const TOO_MANY = new Refusal(503, 'connections.too_many', 'there are too many connections');
const MALFORMED = new Refusal(400, 'request.malformed', 'this is no request');
const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: new Refusal(431, 'headers.too_large', 'the headers are too large'),
  ERR_HTTP_REQUEST_TIMEOUT: new Refusal(408, 'request.too_slow', 'the request took too long to arrive'),
};

/** Answers on a connection that has no HTTP request, or none any more. */
function refuseHttpSocket(socket: Socket, { problem }: Refusal): void {
  const body = JSON.stringify(problem);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
    'x-content-type-options: nosniff',
    'cache-control: no-store',
    'connection: close',
  ];
  socket.on('error', () => socket.destroy());
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroySoon());
}

async function closeHttpServer(server: Server, app: App): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  await app.close();
  server.closeIdleConnections();
  await Promise.race([closed, sleep(CLOSE_MS_MAX)]);
  server.closeAllConnections();
  await closed;
}
