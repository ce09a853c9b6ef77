// One request and its answer over HTTP, from the SDK's call to the frames of the stream.
//
// The SDK makes the request; this file is the `fetch` it makes it with, and reads the body. The SDKs'
// own stream readers are not used: they fail on anything unknown, take an early end for an end, and
// wait for ever. Everything thrown here is a DroverError.
//
// THE KEY STAYS HOME
//   A redirect is followed only to the same origin, and only where it keeps the method and the body.
//
// TIME
//   watch.ts decides when a server is gone. undici has limits of its own, 300 s each, which would cut a
//   model that thinks for long; they are switched off through the dispatcher's documented options, by
//   way of the global dispatcher, so that a proxy set up there still counts. Where that dispatcher can't
//   be found, undici's limits stay, and a body cut by them is a failure that is worth retrying.

import { DroverError, type Failure } from '../../failure.ts';
import { isJsonObject, type JsonObject } from '../../json.ts';
import type { StreamTimeouts } from '../protocol.ts';
import { garbled } from './assembly.ts';
import { objectOf, parseJson } from './loose.ts';
import { errorIn, failureOfNetwork, failureOfResponse, presentable, type Account } from './rejection.ts';
import { SseDecoder, type Frames, type SseFrame } from './sse.ts';
import { StreamWatch } from './watch.ts';

type Fetch = typeof globalThis.fetch;

export type Exchange = {
  readonly account: Account;
  readonly timeouts: StreamTimeouts;
  /** Makes the request, with this fetch and no other. */
  readonly send: (fetch: Fetch) => Promise<Response>;
  /** A whole answer as the frames it could have come in, or undefined where it is none. */
  readonly unfold: (whole: JsonObject) => readonly SseFrame[] | undefined;
  /** Whether nothing is expected after this frame. */
  readonly isLast: (frame: SseFrame) => boolean;
};

export type Answer = { readonly headers: Readonly<Record<string, string>>; readonly frames: Frames };

const SDK_TIMEOUT_MS_MAX = 2 ** 31 - 1;
const SDK_TIMEOUT_MARGIN_MS = 60_000; // the SDK's own timer must never be the first
const REDIRECTS_MAX = 3;
const ERROR_BODY_BYTES_MAX = 64 * 1024;
const ERROR_BODY_MS_MAX = 5_000;
const WHOLE_BODY_BYTES_MAX = 64 * 1024 * 1024;
const TELLING_HEADERS = /^(retry-after|.*ratelimit.*|.*request-id)$/;
const KEEP_ALIVE = /^\s*\{\s*"type"\s*:\s*"(ping|keepalive)"/;
const WHITE_SPACE: ReadonlySet<number> = new Set([9, 10, 13, 32]);

/** Resolves when the headers of an answer have arrived. Its frames must then be read, or returned from. */
export async function open(exchange: Exchange, signal: AbortSignal): Promise<Answer> {
  const line = new Line(exchange, signal);
  try {
    const response = await exchange.send(line.fetch);
    line.watch.headersArrived();
    return { headers: tellingHeaders(response.headers), frames: line.frames(response) };
  } catch (cause) {
    line.close();
    throw line.failed(cause, (error) => notSent(error, exchange.account));
  }
}

/** What both SDKs are made with: they ask once, say nothing, and leave the time to us. */
export function sdkOptions({ key, address }: Account, timeouts: StreamTimeouts, fetch: Fetch) {
  const say = () => undefined;
  return {
    apiKey: key || 'none', // a server at home may need none, but the SDKs insist
    baseURL: address,
    maxRetries: 0,
    timeout: Math.min(SDK_TIMEOUT_MS_MAX, Math.ceil(timeouts.headersMs) + SDK_TIMEOUT_MARGIN_MS),
    logLevel: 'off',
    logger: { error: say, warn: say, info: say, debug: say },
    fetch,
  } as const;
}

/** One request under way. */
class Line {
  readonly watch: StreamWatch;
  readonly #exchange: Exchange;
  readonly #signal: AbortSignal;
  readonly #stop = new AbortController();
  readonly #abort = () => this.#stop.abort();
  #failure: Failure | undefined;
  #isOver = false; // the answer is complete, only the connection lingers

  constructor(exchange: Exchange, signal: AbortSignal) {
    this.#exchange = exchange;
    this.#signal = signal;
    if (signal.aborted) this.#stop.abort();
    signal.addEventListener('abort', this.#abort, { once: true });
    this.watch = new StreamWatch(exchange.timeouts, (failure) => {
      this.#failure = failure;
      this.#isOver = failure === undefined;
      this.#stop.abort();
    });
  }

  close(): void {
    this.watch.close();
    this.#signal.removeEventListener('abort', this.#abort);
    this.#stop.abort();
  }

  readonly fetch: Fetch = async (input, init) => {
    try {
      return await this.#follow(input instanceof Request ? input.url : String(input), init);
    } catch (cause) {
      // Kept here, since the SDKs wrap what is thrown, and not all of them keep the cause.
      const { account } = this.#exchange;
      this.#failure ??= cause instanceof DroverError ? cause.failure : failureOfNetwork(cause, account);
      throw cause;
    }
  };

  failed(cause: unknown, otherwise: (cause: unknown) => Failure): DroverError {
    if (this.#signal.aborted) return new DroverError(reasonOf(this.#signal), { cause });
    if (this.#failure !== undefined) return new DroverError(this.#failure, { cause });
    return cause instanceof DroverError ? cause : new DroverError(otherwise(cause), { cause });
  }

  async *frames(response: Response): AsyncGenerator<readonly SseFrame[]> {
    const reader = response.body?.getReader();
    try {
      const first = await this.#firstBytes(reader);
      if (reader === undefined || first === undefined) return;
      const begin = first.find((byte) => !WHITE_SPACE.has(byte));
      if (begin === 0x3c) throw this.#isPage(response);
      if (begin === 0x7b || begin === 0x5b) yield await this.#unfold(response, reader, first);
      else yield* this.#decode(reader, first);
    } catch (cause) {
      if (this.#isOver) return;
      throw this.failed(cause, (error) => failureOfNetwork(error, this.#exchange.account));
    } finally {
      this.close();
    }
  }

  async #follow(start: string, init: RequestInit | undefined): Promise<Response> {
    for (let url = start, hops = 0; ; hops++) {
      const dispatcher = patientDispatcher();
      const options = { ...init, redirect: 'manual' as const, signal: this.#stop.signal };
      const response = await fetch(url, dispatcher === undefined ? options : { ...options, dispatcher });
      if (response.ok) return response;
      const { account } = this.#exchange;
      const target = redirectOf(response, url);
      if (target === undefined) {
        const header = (name: string) => response.headers.get(name) ?? undefined;
        const body = await bodyStart(response, this.#stop.signal);
        throw new DroverError(failureOfResponse({ status: response.status, header, body }, account));
      }
      await response.body?.cancel();
      const isKept = response.status === 307 || response.status === 308;
      if (!isKept || hops >= REDIRECTS_MAX || new URL(target).origin !== new URL(url).origin) {
        throw new DroverError(notFollowed(response.status, target, account));
      }
      url = target;
    }
  }

  async #next(reader: Reader): Promise<Uint8Array | undefined> {
    const { done, value } = await reader.read();
    return done ? undefined : value;
  }

  /** Up to the first byte that says what this is; blanks before it say nothing. */
  async #firstBytes(reader: Reader | undefined): Promise<Uint8Array | undefined> {
    if (reader === undefined) return undefined;
    for (;;) {
      const bytes = await this.#next(reader);
      if (bytes === undefined || bytes.some((byte) => !WHITE_SPACE.has(byte))) return bytes;
      this.watch.bytesArrived(false);
      this.watch.resume();
    }
  }

  async *#decode(reader: Reader, first: Uint8Array): AsyncGenerator<readonly SseFrame[]> {
    const decoder = new SseDecoder();
    for (let bytes: Uint8Array | undefined = first; bytes !== undefined; bytes = await this.#next(reader)) {
      const batch = decoder.push(bytes);
      this.watch.bytesArrived(batch.some((frame) => !isKeepAlive(frame)));
      const last = batch.at(-1);
      if (last !== undefined) {
        this.watch.settle(this.#exchange.isLast(last));
        yield batch;
      }
      this.watch.resume();
    }
    const rest = decoder.end();
    if (rest.length > 0) yield rest;
  }

  /** JSON where a stream was asked for: an error, or the answer at once. */
  async #unfold(response: Response, reader: Reader, first: Uint8Array): Promise<readonly SseFrame[]> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for (let bytes: Uint8Array | undefined = first; bytes !== undefined; bytes = await this.#next(reader)) {
      this.watch.bytesArrived(true);
      this.watch.resume();
      size += bytes.length;
      if (size > WHOLE_BODY_BYTES_MAX) throw garbled('the answer is over 64 MB');
      chunks.push(bytes);
    }
    const body = Buffer.concat(chunks).toString('utf8');
    const whole = parseJson(body);
    const frames = isJsonObject(whole) && !isJsonObject(whole['error']) ? this.#exchange.unfold(whole) : undefined;
    if (frames !== undefined) return frames;
    if (errorIn(whole) === undefined) throw garbled('a JSON body that is no answer');
    const header = (name: string) => response.headers.get(name) ?? undefined;
    throw new DroverError(failureOfResponse({ status: response.status, header, body }, this.#exchange.account));
  }

  #isPage(response: Response): DroverError {
    return new DroverError({
      kind: 'provider.rejected',
      status: response.status,
      message: `HTTP ${response.status} with an HTML page instead of an answer`,
      fix: `check the base URL ${this.#exchange.account.address}`,
    });
  }
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

function isKeepAlive({ event, data }: SseFrame): boolean {
  return event === 'ping' || event === 'keepalive' || (data.length < 200 && KEEP_ALIVE.test(data));
}

function tellingHeaders(headers: Headers): Readonly<Record<string, string>> {
  return Object.fromEntries([...headers].filter(([name]) => TELLING_HEADERS.test(name)));
}

function redirectOf(response: Response, from: string): string | undefined {
  const location = response.headers.get('location');
  if (response.status < 300 || response.status >= 400 || location === null) return undefined;
  return URL.canParse(location, from) ? new URL(location, from).href : undefined;
}

function notFollowed(status: number, target: string, account: Account): Failure {
  const { origin } = new URL(target);
  const message = `the server wants to send the request on to ${origin}, and the key does not go there`;
  return { kind: 'provider.rejected', status, message, fix: `if that is right, set the base URL (now ${account.address}) to it` };
}

/** The SDK could not even make the request: a key or an address with characters that don't belong there. */
function notSent(error: unknown, account: Account): Failure {
  const message = presentable(`the request could not be made: ${error instanceof Error ? error.message : error}`, account);
  return {
    kind: 'provider.rejected',
    status: 0,
    message,
    fix: `check the key in ${account.keyName}, and the base URL ${account.address}`,
  };
}

function reasonOf(signal: AbortSignal): Failure {
  return signal.reason instanceof DroverError ? signal.reason.failure : { kind: 'aborted', by: 'user' };
}

/** As much of an error's body as is worth reading; what can't be read says nothing, but the status still does. */
async function bodyStart(response: Response, signal: AbortSignal): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return '';
  const chunks: Uint8Array[] = [];
  const stop = () => void reader.cancel().catch(() => undefined);
  const timer = setTimeout(stop, ERROR_BODY_MS_MAX);
  try {
    for (let size = 0; size < ERROR_BODY_BYTES_MAX; ) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      size += value.length;
    }
  } catch (error) {
    if (signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
    stop();
  }
  return Buffer.concat(chunks).toString('utf8');
}

type Dispatch = (options: object, handler: object) => boolean;

/** The global dispatcher without undici's own time limits. */
function patientDispatcher(): RequestInit['dispatcher'] {
  const shared: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'));
  if (typeof shared !== 'object' || shared === null || !('dispatch' in shared)) return undefined;
  const dispatch = (shared.dispatch as Dispatch).bind(shared);
  const patient = {
    dispatch: (options: object, handler: object) =>
      dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler),
  };
  // fetch uses nothing of a dispatcher but `dispatch`.
  return patient as unknown as RequestInit['dispatcher'];
}
