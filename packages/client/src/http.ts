// One request and its response: adds the token, applies bounds and throws refusals as DroverProblem.

import { DroverProblem, problemOfServer } from './problem.ts';

const REQUEST_MS_MAX = 60_000;
const BODY_BYTES_MAX = 256 * 1024 * 1024;

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export type Server = { readonly baseUrl: string; readonly token: string /* or none */; readonly fetch: Fetch };

export type Asked = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  readonly signal: AbortSignal | undefined;
};

/** Sends a request and returns the JSON of the response; undefined if it has no body. */
export async function askServerForJson(server: Server, asked: Asked): Promise<unknown> {
  const timeout = AbortSignal.timeout(REQUEST_MS_MAX);
  const signal = asked.signal === undefined ? timeout : AbortSignal.any([asked.signal, timeout]);
  const body = await readServerBody(await askServer(server, { ...asked, signal }, {}));
  return body === '' ? undefined : JSON.parse(body);
}

/** Opens a stream. The caller must read its body to the end or cancel it. */
export async function askServerForStream(
  server: Server,
  asked: Asked,
  headers: Record<string, string>,
): Promise<Response> {
  const response = await askServer(server, asked, { accept: 'text/event-stream', ...headers });
  const type = response.headers.get('content-type') ?? '';
  if (response.status === 204 || type.startsWith('text/event-stream')) return response;
  await response.body?.cancel();
  const title = `${asked.path} answered ${type === '' ? 'something' : type} instead of events`;
  throw new DroverProblem({ type: 'not-a-stream', title, status: 406 });
}

async function askServer(
  server: Server,
  { method, path, body, signal }: Asked,
  headers: Record<string, string>,
): Promise<Response> {
  const { baseUrl, token, fetch } = server; // browsers need fetch to be called without a receiver
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: {
      ...headers,
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error', // never send the token to another server
  });
  if (response.ok) return response;
  throw problemOfServer(response, await readServerBody(response));
}

async function readServerBody(response: Response): Promise<string> {
  if (response.body === null) return '';
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let size = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    size += read.value.length;
    if (size > BODY_BYTES_MAX) {
      await reader.cancel();
      throw new DroverProblem({ type: 'too-large', title: 'the answer is too large to be one', status: 502 });
    }
    pieces.push(decoder.decode(read.value, { stream: true }));
  }
  return pieces.join('') + decoder.decode();
}
