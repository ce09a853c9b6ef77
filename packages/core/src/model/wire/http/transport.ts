// Transport: one request and its answer over HTTP, from the SDK call to the frames of the stream.
//
// The SDK makes the request with the fetch of this file, and this file reads the body. The SDKs' own stream readers
// are not used: they fail on unknown events, accept a truncated stream as complete, and wait forever.
//
// Failure: only DroverErrors are thrown. watch.ts decides when a server is gone. Aborting closes the socket at once.

import { DroverError } from '../../../errors.ts';
import type { Failure } from '@drover/protocol/failures';
import { isJsonObject, type JsonObject } from '@drover/protocol/json';
import type { StreamTimeouts } from '../../provider.ts';
import { garbledWireAnswer } from '../assembly.ts';
import { fetchHttpAnswer } from './fetch.ts';
import { parseLooseJson } from '../loose.ts';
import {
  errorInHttpBody,
  failureOfHttpNetwork,
  failureOfHttpResponse,
  presentableHttpMessage,
  type Account,
} from './rejection.ts';
import { SseDecoder, type Frames, type SseFrame } from './sse.ts';
import { StreamWatch } from './watch.ts';

type Fetch = typeof globalThis.fetch;

export type Exchange = {
  readonly account: Account;
  readonly timeouts: StreamTimeouts;
  /** Makes the request, using only this fetch. */
  readonly send: (fetch: Fetch) => Promise<Response>;
  /** Splits a complete JSON answer into frames; undefined if the object is not an answer. */
  readonly unfold: (whole: JsonObject) => readonly SseFrame[] | undefined;
  /** Whether the answer ends with this frame. */
  readonly isLast: (frame: SseFrame) => boolean;
};

/** An answer in progress. The request is sent when its frames are first read. */
export type HttpAnswer = {
  readonly frames: Frames;
  /** Headers worth keeping; empty until they arrive. */
  readonly headers: () => Readonly<Record<string, string>>;
};

const SDK_TIMEOUT_MS_MAX = 2 ** 31 - 1;
const SDK_TIMEOUT_MARGIN_MS = 60_000; // drover's own timers must fire before the SDK's
const WHOLE_BODY_BYTES_MAX = 64 * 1024 * 1024;
const TELLING_HEADERS = /^(date|retry-after(-ms)?|.*ratelimit.*|.*request-id)$/;
const KEEP_ALIVE = /^\s*\{\s*"type"\s*:\s*"(ping|keepalive)"/;
const WHITE_SPACE: ReadonlySet<number> = new Set([9, 10, 13, 32]);
const ANGLE = 0x3c; // starts an HTML page
const BRACE = 0x7b; // starts JSON
const BRACKET = 0x5b; // starts JSON too

export function openHttpAnswer(exchange: Exchange, signal: AbortSignal): HttpAnswer {
  const line = new Line(exchange, signal);
  return { frames: line.frames(), headers: () => line.headers };
}

/** Options for both SDKs: no retries, no logging, and a timeout that never fires first. */
export function httpSdkOptions({ key, address }: Account, timeouts: StreamTimeouts, fetch: Fetch) {
  const say = () => undefined;
  return {
    apiKey: key || 'none', // a local server may need no key, but the SDKs require one
    baseURL: address,
    maxRetries: 0,
    timeout: Math.min(SDK_TIMEOUT_MS_MAX, Math.ceil(timeouts.headersMs) + SDK_TIMEOUT_MARGIN_MS),
    logLevel: 'off',
    logger: { error: say, warn: say, info: say, debug: say },
    fetch,
  } as const;
}

/** One request in progress. */
class Line {
  headers: Readonly<Record<string, string>> = {};
  readonly #exchange: Exchange;
  readonly #signal: AbortSignal;
  readonly #stop = new AbortController();
  #failure: Failure | undefined;

  constructor(exchange: Exchange, signal: AbortSignal) {
    this.#exchange = exchange;
    this.#signal = signal;
  }

  async *frames(): AsyncGenerator<readonly SseFrame[]> {
    const abort = () => this.#stop.abort();
    if (this.#signal.aborted) abort();
    this.#signal.addEventListener('abort', abort, { once: true });
    const watch = new StreamWatch(this.#exchange.timeouts, (failure) => {
      this.#failure = failure;
      abort();
    });
    try {
      const response = await this.#send();
      watch.headersArrived();
      this.headers = diagnosticHttpHeaders(response.headers);
      yield* this.#read(response, watch);
    } catch (cause) {
      throw this.#reason(cause);
    } finally {
      watch.close();
      this.#signal.removeEventListener('abort', abort);
      abort();
    }
  }

  /** The error to throw: the abort or the failure that ended the request, or else the cause itself. */
  #reason(cause: unknown): unknown {
    if (this.#signal.aborted) return new DroverError(httpAbortReason(this.#signal), { cause });
    if (this.#failure !== undefined) return new DroverError(this.#failure, { cause });
    return cause;
  }

  async #send(): Promise<Response> {
    try {
      return await this.#exchange.send(this.#fetch);
    } catch (cause) {
      // `#fetch` has already recorded its failures. Any other error comes from the SDK itself.
      this.#failure ??= httpRequestNotSent(cause, this.#exchange.account);
      throw cause;
    }
  }

  readonly #fetch: Fetch = async (input, init) => {
    try {
      return await fetchHttpAnswer(
        input instanceof Request ? input.url : String(input),
        { ...init, signal: this.#stop.signal },
        this.#exchange.account,
      );
    } catch (cause) {
      // Record the failure here: the SDKs wrap errors, and not all of them keep the cause.
      this.#failure ??=
        cause instanceof DroverError ? cause.failure : failureOfHttpNetwork(cause, this.#exchange.account);
      throw cause;
    }
  };

  async *#read(response: Response, watch: StreamWatch): AsyncGenerator<readonly SseFrame[]> {
    const reader = response.body?.getReader();
    if (reader === undefined) return;
    const body: Body = { reader, watch, account: this.#exchange.account };
    const first = await firstHttpBytes(body);
    if (first === undefined) return;
    const begin = first.find((byte) => !WHITE_SPACE.has(byte));
    if (begin === ANGLE) throw this.#isPage(response);
    if (begin === BRACE || begin === BRACKET) yield this.#unfold(response, await restOfHttpBody(body, first));
    else yield* this.#decode(body, first);
  }

  async *#decode(body: Body, first: Uint8Array): AsyncGenerator<readonly SseFrame[]> {
    const decoder = new SseDecoder();
    for (let bytes: Uint8Array | undefined = first; bytes !== undefined; bytes = await nextHttpBytes(body)) {
      const batch = decoder.push(bytes);
      body.watch.bytesArrived(batch.some((frame) => !isHttpKeepAlive(frame)));
      const last = batch.at(-1);
      if (last !== undefined) {
        body.watch.settle(this.#exchange.isLast(last));
        yield batch;
      }
      body.watch.resume();
    }
    const rest = decoder.end();
    if (rest.length > 0) yield rest;
  }

  /** Handles a JSON body instead of a stream: an error, or the whole answer at once. */
  #unfold(response: Response, body: string): readonly SseFrame[] {
    const whole = parseLooseJson(body);
    const frames = isJsonObject(whole) && !isJsonObject(whole['error']) ? this.#exchange.unfold(whole) : undefined;
    if (frames !== undefined) return frames;
    if (errorInHttpBody(whole) === undefined) throw garbledWireAnswer('a JSON body that is no answer');
    const header = (name: string) => response.headers.get(name) ?? undefined;
    throw new DroverError(failureOfHttpResponse({ status: response.status, header, body }, this.#exchange.account));
  }

  #isPage(response: Response): DroverError {
    return new DroverError({
      kind: 'provider.rejected',
      status: response.status,
      message: `HTTP ${response.status} with an HTML page instead of an answer`,
      fix: `check the base URL ${this.#exchange.account.shownAddress}`,
    });
  }
}

type Body = {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly watch: StreamWatch;
  readonly account: Account;
};

async function nextHttpBytes({ reader, account }: Body): Promise<Uint8Array | undefined> {
  const { done, value } = await reader.read().catch((cause: unknown) => {
    throw new DroverError(failureOfHttpNetwork(cause, account), { cause });
  });
  return done ? undefined : value;
}

/** Skips leading white space and returns the first chunk with content. */
async function firstHttpBytes(body: Body): Promise<Uint8Array | undefined> {
  for (;;) {
    const bytes = await nextHttpBytes(body);
    if (bytes === undefined || bytes.some((byte) => !WHITE_SPACE.has(byte))) return bytes;
    body.watch.bytesArrived(false);
    body.watch.resume();
  }
}

async function restOfHttpBody(body: Body, first: Uint8Array): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let bytes: Uint8Array | undefined = first; bytes !== undefined; bytes = await nextHttpBytes(body)) {
    body.watch.bytesArrived(true);
    body.watch.resume();
    size += bytes.length;
    if (size > WHOLE_BODY_BYTES_MAX) throw garbledWireAnswer('the answer is over 64 MB');
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function isHttpKeepAlive({ event, data }: SseFrame): boolean {
  return event === 'ping' || event === 'keepalive' || (data.length < 200 && KEEP_ALIVE.test(data));
}

function diagnosticHttpHeaders(headers: Headers): Readonly<Record<string, string>> {
  return Object.fromEntries([...headers].filter(([name]) => TELLING_HEADERS.test(name)));
}

/** The failure if the SDK could not build the request: the key or the address contains invalid characters. */
function httpRequestNotSent(error: unknown, account: Account): Failure {
  const message = presentableHttpMessage(error instanceof Error ? error.message : String(error), account);
  return {
    kind: 'request.unmade',
    message,
    fix: `check the key in ${account.keyName}, and the base URL ${account.shownAddress}`,
  };
}

function httpAbortReason(signal: AbortSignal): Failure {
  return signal.reason instanceof DroverError ? signal.reason.failure : { kind: 'aborted', by: 'user' };
}
