// Fetch for all model requests: returns a response, or throws a DroverError that says why there is none.
//
// Guarantees
//   1. The API key never leaves its origin. A redirect is followed only to the same origin, and only if it keeps
//      the method and the body.
//   2. undici's own timeouts, 300 s each for headers and silence, are off, because they would cut off a model that
//      thinks for long. They are set through the global dispatcher, so a proxy configured there still works.
//
// Failure: without a global dispatcher, undici's timeouts stay on. A request that they cut off can be retried.

import { DroverError } from '../../../errors.ts';
import type { Failure } from '@drover/protocol/failures';
import { failureOfHttpResponse, type Account } from './rejection.ts';
import { handled } from '../../../promises.ts';

const REDIRECTS_MAX = 3;
const ERROR_BODY_BYTES_MAX = 64 * 1024;
const ERROR_BODY_MS_MAX = 5_000;

/** Returns a successful response. If the connection fails, throws what fetch throws. */
export async function fetchHttpAnswer(start: string, init: RequestInit, account: Account): Promise<Response> {
  for (let url = start, hops = 0; ; hops++) {
    const options = { ...init, ...httpDispatcherWithoutTimeouts(), redirect: 'manual' as const };
    const response = await fetch(url, options);
    if (response.ok) return response;
    const target = httpRedirectOf(response, url);
    if (target === undefined) {
      const header = (name: string) => response.headers.get(name) ?? undefined;
      const body = await httpBodyStart(response, init.signal ?? undefined);
      throw new DroverError(failureOfHttpResponse({ status: response.status, header, body }, account));
    }
    await response.body?.cancel();
    const isKept = response.status === 307 || response.status === 308;
    if (!isKept || hops >= REDIRECTS_MAX || new URL(target).origin !== new URL(url).origin) {
      throw new DroverError(httpRedirectNotFollowed(response.status, target, account));
    }
    url = target;
  }
}

function httpRedirectOf(response: Response, from: string): string | undefined {
  const location = response.headers.get('location');
  if (response.status < 300 || response.status >= 400 || location === null) return undefined;
  return URL.canParse(location, from) ? new URL(location, from).href : undefined;
}

function httpRedirectNotFollowed(status: number, target: string, account: Account): Failure {
  const { origin } = new URL(target);
  const message = `the server wants to send the request on to ${origin}, and the key does not go there`;
  return {
    kind: 'provider.rejected',
    status,
    message,
    fix: `if that is right, set the base URL (now ${account.shownAddress}) to it`,
  };
}

/** Reads the start of an error body, bounded in size and time. Read errors are ignored: the status is enough. */
async function httpBodyStart(response: Response, signal: AbortSignal | undefined): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return '';
  const chunks: Uint8Array[] = [];
  const stop = () => handled(reader.cancel());
  const timer = setTimeout(stop, ERROR_BODY_MS_MAX);
  try {
    for (let size = 0; size < ERROR_BODY_BYTES_MAX;) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      size += value.length;
    }
  } catch (error) {
    if (signal?.aborted === true) throw error;
  } finally {
    clearTimeout(timer);
    stop();
  }
  return Buffer.concat(chunks).toString('utf8');
}

type Dispatch = (options: object, handler: object) => boolean;

/** The global dispatcher without undici's own timeouts. fetch uses only its `dispatch`. */
function httpDispatcherWithoutTimeouts(): object {
  const shared: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'));
  if (typeof shared !== 'object' || shared === null || !('dispatch' in shared)) return {};
  const dispatch = (shared.dispatch as Dispatch).bind(shared);
  return {
    dispatcher: {
      dispatch: (options: object, handler: object) =>
        dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler),
    },
  };
}
