// The network of a sandbox: an HTTP proxy outside the box, on a Unix socket that is bound into it.
//
// Guarantees
//   1. Every CONNECT and every plain HTTP request is decided anew, and reported once through `onConnection`.
//   2. The parsed host that a rule permits is the one that is resolved, once, and the checked address is dialled.
//   3. A refusal is answered at once with 403 and a sentence that names the host and the `--net` rule.
//   4. Connections, headers, waiting and idling are bounded. `close` destroys every socket, also those in progress.
//
// The box reaches the proxy by the socket only (`relay.ts`). The caller makes the socket's folder with mode 0700.

import { chmod } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Connection, Policy, Resolve } from './decide.ts';
import { type Dialing, parseUpstreamProxy } from './dial.ts';
import { forwardProxyExchange } from './exchange.ts';
import type { HostRule } from './hosts.ts';
import { answerProxyRefusal, Refusal, toProxyRefusal, writeProxyRefusal } from './refusal.ts';
import { openProxyTunnel } from './tunnel.ts';

export type { Connection } from './decide.ts';

type ProxyBounds = {
  readonly connectionsMax: number; // also of requests that one pipelining client has open
  readonly headerBytesMax: number;
  readonly headersMs: number; // until all headers of a request arrived
  readonly connectMs: number; // to resolve, and again to connect
  readonly idleMs: number; // without a byte in either direction
};

const PROXY_BOUNDS: ProxyBounds = {
  connectionsMax: 256,
  headerBytesMax: 32 * 1024,
  headersMs: 30_000,
  connectMs: 10_000,
  idleMs: 5 * 60_000,
};

// Connections over the bound that get an answer; the server drops those beyond.
const REFUSED_MAX = 256;
const KEEP_ALIVE_MS = 60_000;

export type ProxyOptions = {
  readonly rules: readonly HostRule[];
  readonly socket: string;
  readonly onConnection: (connection: Connection) => void;
  readonly resolve?: Resolve; // dns.lookup by default
  readonly upstream?: string; // the user's own proxy, http://host:port; loopback targets never go through it
  readonly bounds?: Partial<ProxyBounds>;
};

export type OpenProxy = { readonly close: () => Promise<void> };

/** Listens on the socket, readable by this user only. Throws if the path is taken or the upstream is malformed. */
export async function openSandboxProxy(options: ProxyOptions): Promise<OpenProxy> {
  const bounds = { ...PROXY_BOUNDS, ...options.bounds };
  const sockets = new Set<Socket>();
  let closed = false;
  const track = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).once('close', () => sockets.delete(socket));
    if (closed) socket.destroy();
  };
  const report = (connection: Connection): void => {
    if (!closed) options.onConnection(connection);
  };
  const policy = policyOfProxy({ ...options, onConnection: report }, bounds);
  const server = makeProxyServer(bounds, { policy, dialing: dialingOfProxy(options, bounds, track) });
  server.on('connection', track);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(options.socket, resolve);
  });
  await chmod(options.socket, 0o600);
  return {
    close: async () => {
      closed = true;
      const done = new Promise<void>((resolve) => server.close(() => resolve()));
      const gone = [...sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve)));
      for (const socket of sockets) socket.destroy();
      await Promise.all([done, ...gone]);
    },
  };
}

function policyOfProxy(options: ProxyOptions, { connectMs }: ProxyBounds): Policy {
  const { rules, resolve, upstream, onConnection } = options;
  return {
    rules,
    onConnection,
    viaUpstream: upstream !== undefined,
    resolveMs: connectMs,
    ...(resolve === undefined ? {} : { resolve }),
  };
}

function dialingOfProxy({ upstream }: ProxyOptions, bounds: ProxyBounds, track: Dialing['track']): Dialing {
  const { connectMs, idleMs } = bounds;
  return { connectMs, idleMs, track, ...(upstream === undefined ? {} : { upstream: parseUpstreamProxy(upstream) }) };
}

type Parts = { readonly policy: Policy; readonly dialing: Dialing };

function makeProxyServer(bounds: ProxyBounds, { policy, dialing }: Parts): Server {
  const { connectionsMax, headerBytesMax, headersMs, idleMs } = bounds;
  const server = createServer({
    insecureHTTPParser: false,
    maxHeaderSize: headerBytesMax,
    headersTimeout: headersMs,
    requestTimeout: 0, // an upload may take long; `idleMs` ends one that stalls
    keepAliveTimeout: Math.min(KEEP_ALIVE_MS, idleMs),
    connectionsCheckingInterval: Math.min(5_000, headersMs),
    noDelay: true,
  });
  // A bound on the count would hide headers that the parser obeys. Their size is bounded.
  server.maxHeadersCount = 0;
  server.maxConnections = connectionsMax + REFUSED_MAX;
  server.timeout = idleMs;
  const open = openProxyCounter(connectionsMax);
  const busy = new WeakSet<Duplex>();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    if (busy.has(socket)) {
      answerProxyRefusal(response, new Refusal(400, 'the proxy of the sandbox does not take pipelined requests'));
      return;
    }
    busy.add(socket);
    response.once('close', () => busy.delete(socket));
    const served = open(response, () => forwardProxyExchange(policy, dialing, { request, response }));
    served.catch((error: unknown) => answerProxyRefusal(response, toProxyRefusal(error)));
  });
  server.on('connect', (request: IncomingMessage, _: Duplex, head: Buffer) => {
    const client = request.socket.setTimeout(idleMs, () => request.socket.destroy());
    const served = open(client, () => openProxyTunnel(policy, dialing, { request, client, head }));
    served.catch((error: unknown) => writeProxyRefusal(client, toProxyRefusal(error)));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, client: Duplex) => {
    // An answer would end up in the middle of the response that this client is receiving.
    if (busy.has(client)) client.destroy();
    else writeProxyRefusal(client, malformedProxyRequest(error));
  });
  return server;
}

/** Serves at most `max` at a time; each counts until its client's side has closed. A refused client does not count. */
function openProxyCounter(max: number) {
  let count = 0;
  return async (client: Duplex | ServerResponse, serve: () => Promise<void>): Promise<void> => {
    if (count >= max) throw new Refusal(503, `the sandbox has more than ${max} connections open`);
    count += 1;
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    client.once('close', close);
    try {
      await serve();
      await closed;
    } finally {
      count -= 1;
    }
  };
}

function malformedProxyRequest({ code }: NodeJS.ErrnoException): Refusal {
  if (code === 'HPE_HEADER_OVERFLOW') return new Refusal(431, 'the headers of the request are too large');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Refusal(408, 'the request took too long to arrive');
  return new Refusal(400, 'this is not a valid HTTP request');
}
