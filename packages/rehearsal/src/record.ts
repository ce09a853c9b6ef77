// The record of the server: every request with its outcome, and ways to wait for one.

import type { IncomingMessage } from 'node:http';
import type { Exchange } from './exchange.ts';
import { isRehearsalObject, type Json } from './json.ts';
import type { Api } from './wire/wire.ts';

/** Number of requests that keep their bodies. */
const REMEMBERED_MAX = 10_000;
const SECRET_HEADERS = new Set(['authorization', 'x-api-key', 'api-key', 'cookie']);
const KEPT_SECRET_CHARS = 4;

/** A request and its outcome. Times are milliseconds since 1970. */
export type RecordedRequest = {
  readonly n: number;
  readonly api: Api | undefined;
  readonly agent: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json;
  readonly rawBody: string;
  readonly at: number;
  /** Names of the faults that hit it. */
  readonly faults: readonly string[];
  readonly status: number | undefined;
  /** The reason of a refusal, in the words of the API. */
  readonly refusal: string | undefined;
  /** True if the client disconnected before the response was complete. */
  readonly aborted: boolean;
  /** When the response was complete, or the client disconnected. */
  readonly closedAt: number | undefined;
};

export class RequestLog {
  readonly all: Exchange[] = [];
  #waiting: (() => void)[] = [];

  add(exchange: Exchange): void {
    this.all.push(exchange);
    const old = this.all[this.all.length - 1 - REMEMBERED_MAX];
    if (old !== undefined) Object.assign(old, { body: '', rawBody: '' });
    this.wake();
  }

  /** Wakes all waiters. */
  wake(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }

  /** Resolves to the nth request (from 1) once it satisfies the condition. */
  async when(n: number, isWanted: (record: RecordedRequest) => boolean): Promise<RecordedRequest> {
    for (;;) {
      const exchange = this.all[n - 1];
      if (exchange !== undefined && isWanted(exchange)) return exchange;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

/** Records a request whose body has arrived. */
export function recordRehearsedRequest(n: number, request: IncomingMessage, rawBody: string): Exchange {
  const path = request.url ?? '/';
  return {
    n,
    api: apiOfRehearsedPath(path),
    agent: '',
    path,
    headers: Object.fromEntries(
      headersOfRehearsedRequest(request).map(([name, value]) => [
        name,
        SECRET_HEADERS.has(name) ? maskRehearsedKey(value) : value,
      ]),
    ),
    rawBody,
    body: parseRehearsedBody(rawBody),
    at: Date.now(),
    faults: [],
    status: undefined,
    refusal: undefined,
    aborted: false,
    closedAt: undefined,
  };
}

function headersOfRehearsedRequest(request: IncomingMessage): readonly (readonly [string, string])[] {
  return Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
}

/** The keys of a request, which are not recorded. */
export function unrecordedRehearsalKeys(request: IncomingMessage): readonly string[] {
  return headersOfRehearsedRequest(request).flatMap(([name, value]) => (SECRET_HEADERS.has(name) ? [value] : []));
}

/** Finds the API by the end of the path, so that a client may use any base address. */
function apiOfRehearsedPath(path: string): Api | undefined {
  const bare = path.split('?', 1)[0] ?? '';
  if (bare.endsWith('/chat/completions')) return 'openai-chat';
  if (bare.endsWith('/responses')) return 'openai';
  return bare.endsWith('/messages') ? 'anthropic' : undefined;
}

function parseRehearsedBody(text: string): Json {
  try {
    const value: Json = JSON.parse(text);
    return isRehearsalObject(value) ? value : text;
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

function maskRehearsedKey(value: string): string {
  const bearer = value.startsWith('Bearer ') ? 'Bearer ' : '';
  return `${bearer}…${value.slice(bearer.length).slice(-KEPT_SECRET_CHARS)}`;
}
