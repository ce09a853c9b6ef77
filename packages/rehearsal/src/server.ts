// The rehearsal server: a model on loopback that says what a script says.
//
// It speaks Anthropic Messages, OpenAI Chat Completions and OpenAI Responses, told apart by the path,
// refuses what the real APIs refuse, and keeps what it was sent so that a test can look at it.

import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exchanges, type Exchange, type RequestHook } from './exchange.ts';
import { isObject, type Json } from './json.ts';
import type { Script } from './script.ts';
import type { Api } from './wire/wire.ts';

const HOST = '127.0.0.1';
/** Nobody's request is this large; what is over it is not even read. */
const BODY_BYTES_MAX = 256 * 1024 * 1024;
/** How many requests are remembered with their bodies. */
const REMEMBERED_MAX = 10_000;
const SECRET_HEADERS = new Set(['authorization', 'x-api-key', 'api-key', 'cookie']);
const KEPT_SECRET_CHARS = 4;

export type RehearsalOptions = {
  /** Without it, any free one. */
  readonly port?: number;
  /** Sees every request first, and may answer it. */
  readonly onRequest?: RequestHook;
};

/** A request as it came, and what became of it. Times are milliseconds since 1970. */
export type RecordedRequest = {
  readonly n: number;
  readonly api: Api | undefined;
  readonly agent: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json;
  readonly rawBody: string;
  readonly at: number;
  /** The faults that befell it, by name. */
  readonly faults: readonly string[];
  readonly status: number | undefined;
  /** Why it was refused, in the words of the API. */
  readonly refusal: string | undefined;
  /** True when the client went away before the response was complete. */
  readonly aborted: boolean;
  /** When the response was complete, or the client gone. */
  readonly closedAt: number | undefined;
};

export type Rehearsal = {
  /** For ANTHROPIC_BASE_URL; OPENAI_BASE_URL has `/v1` behind it. */
  readonly url: string;
  readonly baseUrlFor: (api: Api) => string;
  readonly requests: readonly RecordedRequest[];
  /** How many requests were refused because the real API would refuse them. */
  readonly rejections: number;
  readonly inFlight: number;
  readonly maxInFlight: number;
  /** The nth request, from 1, as soon as it has arrived. */
  readonly received: (n: number) => Promise<RecordedRequest>;
  /** The nth request once its response is complete or its client gone. */
  readonly settled: (n: number) => Promise<RecordedRequest>;
  readonly close: () => Promise<void>;
};

export async function startRehearsal(script: Script, options: RehearsalOptions = {}): Promise<Rehearsal> {
  const requests: Exchange[] = [];
  const waiting: (() => void)[] = [];
  const counts = { rejections: 0, inFlight: 0, maxInFlight: 0 };
  const wake = (): void => {
    for (const resume of waiting.splice(0)) resume();
  };
  const respond = exchanges(script, counts, options.onRequest);

  const server = createServer((request, response) => {
    counts.inFlight += 1;
    counts.maxInFlight = Math.max(counts.maxInFlight, counts.inFlight);
    const gone = new AbortController();
    let exchange: Exchange | undefined;
    response.on('close', () => {
      counts.inFlight -= 1;
      if (exchange !== undefined) {
        exchange.aborted = !response.writableFinished;
        exchange.closedAt = Date.now();
      }
      gone.abort();
      wake();
    });
    void readBody(request)
      .then(async (bytes) => {
        exchange = arrived(requests.length + 1, request, bytes.toString());
        requests.push(exchange);
        forget(requests[requests.length - 1 - REMEMBERED_MAX]);
        wake();
        await respond(exchange, { bytes, secrets: secretsOf(request) }, response, gone.signal);
      })
      .catch((error: unknown) => {
        // Scripts may hold functions, and those may throw: whoever asked shall see it, and the server lives on.
        const message = `the script failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
        if (exchange !== undefined) Object.assign(exchange, { status: 500, refusal: message });
        if (response.headersSent) response.destroy();
        else response.writeHead(500, { 'content-type': 'text/plain', 'x-should-retry': 'false' }).end(message);
      });
  });
  // A client under test decides itself how long it waits.
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(options.port ?? 0, HOST, resolve);
  });
  const url = `http://${HOST}:${(server.address() as AddressInfo).port}`;

  const when = async (n: number, isReady: (exchange: Exchange) => boolean): Promise<RecordedRequest> => {
    for (;;) {
      const exchange = requests[n - 1];
      if (exchange !== undefined && isReady(exchange)) return exchange;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };
  return {
    url,
    baseUrlFor: (api) => (api === 'anthropic' ? url : `${url}/v1`),
    requests,
    get rejections() {
      return counts.rejections;
    },
    get inFlight() {
      return counts.inFlight;
    },
    get maxInFlight() {
      return counts.maxInFlight;
    },
    received: (n) => when(n, () => true),
    settled: (n) => when(n, ({ closedAt }) => closedAt !== undefined),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size <= BODY_BYTES_MAX) pieces.push(piece);
    }
  } catch (error) {
    // The client went away while it was still sending: what came is all there is.
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ECONNRESET') throw error;
  }
  return Buffer.concat(pieces);
}

function arrived(n: number, request: IncomingMessage, rawBody: string): Exchange {
  const path = request.url ?? '/';
  return {
    n,
    api: apiOf(path),
    agent: '',
    path,
    headers: Object.fromEntries(
      headersOf(request).map(([name, value]) => [name, SECRET_HEADERS.has(name) ? masked(value) : value]),
    ),
    rawBody,
    body: parsed(rawBody),
    at: Date.now(),
    faults: [],
    status: undefined,
    refusal: undefined,
    aborted: false,
    closedAt: undefined,
  };
}

function headersOf(request: IncomingMessage): readonly (readonly [string, string])[] {
  return Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
}

function secretsOf(request: IncomingMessage): readonly string[] {
  return headersOf(request).flatMap(([name, value]) => (SECRET_HEADERS.has(name) ? [value] : []));
}

function forget(exchange: Exchange | undefined): void {
  if (exchange === undefined) return;
  exchange.body = '';
  exchange.rawBody = '';
}

/** By the end of the path, so that every base address a client may have been given works. */
function apiOf(path: string): Api | undefined {
  const bare = path.split('?', 1)[0] ?? '';
  if (bare.endsWith('/chat/completions')) return 'openai-chat';
  if (bare.endsWith('/responses')) return 'openai';
  return bare.endsWith('/messages') ? 'anthropic' : undefined;
}

function parsed(text: string): Json {
  try {
    const value: Json = JSON.parse(text);
    return isObject(value) ? value : text;
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

function masked(value: string): string {
  const bearer = value.startsWith('Bearer ') ? 'Bearer ' : '';
  return `${bearer}…${value.slice(bearer.length).slice(-KEPT_SECRET_CHARS)}`;
}
