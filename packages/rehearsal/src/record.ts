// The record of the server: every request with its outcome, and ways to wait for one.

import type { IncomingMessage } from 'node:http';
import type { Exchange } from './exchange.ts';
import { isObject, type Json } from './json.ts';
import type { Api } from './wire/wire.ts';

/** How many requests are remembered with their bodies. */
const REMEMBERED_MAX = 10_000;
const SECRET_HEADERS = new Set(['authorization', 'x-api-key', 'api-key', 'cookie']);
const KEPT_SECRET_CHARS = 4;

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

  /** The nth request, from 1, as soon as it is as wanted. */
  async when(n: number, isWanted: (record: RecordedRequest) => boolean): Promise<RecordedRequest> {
    for (;;) {
      const exchange = this.all[n - 1];
      if (exchange !== undefined && isWanted(exchange)) return exchange;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

/** The record of a request whose body has come. */
export function recordOf(n: number, request: IncomingMessage, rawBody: string): Exchange {
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

/** Its keys, which are not recorded. */
export function secretsOf(request: IncomingMessage): readonly string[] {
  return headersOf(request).flatMap(([name, value]) => (SECRET_HEADERS.has(name) ? [value] : []));
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
