// The rehearsal server: a model on loopback that answers from a script.
//
// It serves Anthropic Messages, OpenAI Chat Completions and OpenAI Responses, chosen by the path. It refuses requests
// that the real APIs refuse, and records all requests for tests.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { rehearseExchanges, type RequestHook, type Respond } from './exchange.ts';
import { recordRehearsedRequest, RequestLog, unrecordedRehearsalKeys, type RecordedRequest } from './record.ts';
import type { Script } from './script.ts';
import type { Api } from './wire/wire.ts';

const HOST = '127.0.0.1';
/** Larger than any real request; further bytes are not read. */
const BODY_BYTES_MAX = 256 * 1024 * 1024;

export type RehearsalOptions = {
  /** Default: any free port. */
  readonly port?: number;
  /** Sees every request first, and may answer it. */
  readonly onRequest?: RequestHook;
};

export type Rehearsal = {
  /** The value for ANTHROPIC_BASE_URL; for OPENAI_BASE_URL append `/v1`. */
  readonly url: string;
  readonly baseUrlFor: (api: Api) => string;
  readonly requests: readonly RecordedRequest[];
  /** Number of requests refused because the real API would refuse them. */
  readonly rejections: number;
  readonly inFlight: number;
  readonly maxInFlight: number;
  /** The nth request, from 1, as soon as it has arrived. */
  readonly received: (n: number) => Promise<RecordedRequest>;
  /** The nth request once its response is complete or its client has disconnected. */
  readonly settled: (n: number) => Promise<RecordedRequest>;
  readonly close: () => Promise<void>;
};

export async function startRehearsal(script: Script, options: RehearsalOptions = {}): Promise<Rehearsal> {
  const log = new RequestLog();
  const counts = { rejections: 0, inFlight: 0, maxInFlight: 0 };
  const respond = rehearseExchanges(script, counts, options.onRequest);
  const server = createServer((request, response) => {
    counts.inFlight += 1;
    counts.maxInFlight = Math.max(counts.maxInFlight, counts.inFlight);
    response.on('close', () => (counts.inFlight -= 1));
    void serveRehearsal({ request, response, log, respond });
  });
  // No timeout, because the client under test decides how long it waits.
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(options.port ?? 0, HOST, resolve);
  });
  const url = `http://${HOST}:${(server.address() as AddressInfo).port}`;
  return {
    url,
    baseUrlFor: (api) => (api === 'anthropic' ? url : `${url}/v1`),
    requests: log.all,
    get rejections() {
      return counts.rejections;
    },
    get inFlight() {
      return counts.inFlight;
    },
    get maxInFlight() {
      return counts.maxInFlight;
    },
    received: (n) => log.when(n, () => true),
    settled: (n) => log.when(n, ({ closedAt }) => closedAt !== undefined),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Serving = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly log: RequestLog;
  readonly respond: Respond;
};

async function serveRehearsal({ request, response, log, respond }: Serving): Promise<void> {
  const bytes = await readRehearsedBody(request);
  const exchange = recordRehearsedRequest(log.all.length + 1, request, bytes.toString());
  const gone = new AbortController();
  const settle = (): void => {
    exchange.aborted = !response.writableFinished;
    exchange.closedAt = Date.now();
    gone.abort();
    log.wake();
  };
  // A client may disconnect while it is still sending.
  if (response.destroyed) settle();
  else response.on('close', settle);
  log.add(exchange);
  try {
    const unrecorded = { bytes, secrets: unrecordedRehearsalKeys(request) };
    await respond({ exchange, unrecorded }, response, gone.signal);
  } catch (error) {
    // Functions in scripts may throw: the client gets the error, and the server continues.
    const message = `the script failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
    Object.assign(exchange, { status: 500, refusal: message });
    if (response.headersSent) response.destroy();
    else response.writeHead(500, { 'content-type': 'text/plain', 'x-should-retry': 'false' }).end(message);
  }
}

async function readRehearsedBody(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size <= BODY_BYTES_MAX) pieces.push(piece);
    }
  } catch (error) {
    // The client disconnected while it was sending, so the body is incomplete.
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ECONNRESET') throw error;
  }
  return Buffer.concat(pieces);
}
