// Plain HTTP: one request in absolute form, forwarded over a connection of its own.
//
// Guarantees
//   1. Only what Node's strict parser understood is written again: the framing and the Host header are made new.
//   2. Hop-by-hop headers, and those that `Connection` lists, pass in neither direction.
//   3. No connection to a target serves two requests, so bytes of one can never become part of another.

import { type ClientRequest, type IncomingMessage, request as send, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { type Allowed, decideConnection, type Policy } from './decide.ts';
import { upstreamAuthorization, type Dialing, dialForRequest } from './dial.ts';
import { formatHostTarget, type Target } from './hosts.ts';
import { answerProxyRefusal, Refusal } from './refusal.ts';

const HEADER_BYTES_MAX = 64 * 1024;
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
const REMADE = ['host', 'content-length', 'expect'];
const BODILESS = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'];

export type Exchange = { readonly request: IncomingMessage; readonly response: ServerResponse };

/** Forwards the request and starts the response, or throws a Refusal before anything was answered. */
export async function forwardProxyExchange(policy: Policy, dialing: Dialing, exchange: Exchange): Promise<void> {
  const { request, response } = exchange;
  const { authority, path } = parseProxyRequestUrl(request);
  const allowed = await decideConnection(policy, authority, 80);
  if (response.destroyed) return;
  const socket = await dialForRequest(dialing, allowed);
  if (response.destroyed) {
    socket.destroy();
    return;
  }
  const asked = askProxyTarget(socket, { request, path, allowed, dialing });
  response.once('close', () => socket.destroy());
  asked.on('error', () => answerProxyRefusal(response, brokenProxyResponse(allowed.target)));
  // A target that switches protocols unasked.
  asked.once('upgrade', () => answerProxyRefusal(response, brokenProxyResponse(allowed.target)));
  asked.once('response', (answer: IncomingMessage) => respondFromProxy(answer, response));
  // Not a pipeline: that would destroy the client's connection before it got an answer.
  request.on('error', () => asked.destroy()).pipe(asked);
}

const brokenProxyResponse = (target: Target): Refusal =>
  new Refusal(502, `${formatHostTarget(target)} did not send a valid response`);

function parseProxyRequestUrl({ url = '', headers, httpVersionMajor }: IncomingMessage): {
  authority: string;
  path: string;
} {
  if (httpVersionMajor !== 1) throw new Refusal(400, 'the proxy of the sandbox speaks HTTP/1.0 and HTTP/1.1 only');
  if (headers.upgrade !== undefined) throw new Refusal(501, 'the proxy of the sandbox does not upgrade connections');
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new Refusal(501, 'the proxy of the sandbox knows no transfer coding but chunked');
  const [, authority, rest] = /^http:\/\/([^/?#\\]*)((?:[/?][^#]*)?)$/i.exec(url) ?? [];
  if (authority === undefined || rest === undefined)
    throw new Refusal(400, 'this is the proxy of the sandbox: it serves CONNECT and http:// URLs only');
  return { authority, path: rest.startsWith('/') ? rest : `/${rest}` };
}

type Asking = {
  readonly request: IncomingMessage;
  readonly path: string;
  readonly allowed: Allowed;
  readonly dialing: Dialing;
};

function askProxyTarget(socket: Socket, { request, path, allowed, dialing }: Asking): ClientRequest {
  const { method = 'GET', headers } = request;
  const { target, addresses } = allowed;
  const host = target.port === 80 ? formatHostTarget(target).slice(0, -':80'.length) : formatHostTarget(target);
  const upstream = addresses === undefined ? dialing.upstream : undefined;
  const ownHeaders = { host, connection: 'close', ...proxyBodyFraming(method, headers) };
  const proxyHeaders = upstream === undefined ? {} : upstreamAuthorization(upstream);
  try {
    return send({
      createConnection: () => socket,
      method,
      path: upstream === undefined ? path : `http://${host}${path}`,
      headers: [...Object.entries({ ...ownHeaders, ...proxyHeaders }).flat(), ...endToEndProxyHeaders(request, REMADE)],
      setHost: false,
      maxHeaderSize: HEADER_BYTES_MAX,
    });
  } catch (error) {
    socket.destroy();
    if (error instanceof TypeError) throw new Refusal(400, 'the request has a path or a header that is not valid');
    throw error;
  }
}

/** The body's length as the parser understood it. */
function proxyBodyFraming(method: string, headers: IncomingMessage['headers']): Record<string, string> {
  if (headers['transfer-encoding'] !== undefined) return { 'transfer-encoding': 'chunked' };
  const length = headers['content-length'];
  if (length !== undefined) return { 'content-length': length };
  return BODILESS.includes(method) ? {} : { 'content-length': '0' };
}

function respondFromProxy(answer: IncomingMessage, response: ServerResponse): void {
  response.sendDate = false;
  try {
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', endToEndProxyHeaders(answer, []));
  } catch {
    // Node parsed a status or a header that it refuses to write.
    answerProxyRefusal(response, new Refusal(502, 'the target did not send a valid response'));
    answer.destroy();
    return;
  }
  pipeline(answer, response, () => undefined); // pipeline destroys both on any error
}

/** The raw headers, name and value in turn, without the hop-by-hop ones. */
function endToEndProxyHeaders({ rawHeaders, headers }: IncomingMessage, except: readonly string[]): string[] {
  const listed = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const dropped = new Set([...HOP_BY_HOP, ...except, ...listed]);
  return rawHeaders.filter((_, index) => !dropped.has((rawHeaders[index - (index % 2)] ?? '').toLowerCase()));
}
