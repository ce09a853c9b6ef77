// Outgoing connections of the proxy: to exactly the addresses that were checked, or through an upstream proxy.
//
// The caller's `track` sees every socket as soon as it exists, so that closing the proxy destroys those in progress.

import { request } from 'node:http';
import { connect, type LookupFunction, type NetConnectOpts, type Socket, isIPv4 } from 'node:net';
import type { Allowed } from './decide.ts';
import { formatHostTarget } from './hosts.ts';
import { Refusal } from './refusal.ts';

/** The user's own HTTP proxy. */
export type Upstream = { readonly host: string; readonly port: number; readonly authorization?: string };

export type Dialing = {
  readonly connectMs: number;
  readonly idleMs: number;
  readonly upstream?: Upstream;
  readonly track: (socket: Socket) => void;
};

/** Parses `http://[user:password@]host[:port]`. Throws an Error if it is anything else. */
export function parseUpstreamProxy(text: string): Upstream {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' || url.hostname === '')
    throw new Error('The upstream proxy must be an http:// URL, for example http://proxy.example.com:3128');
  const { hostname, port, username, password } = url;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return {
    host: hostname.replaceAll(/[[\]]/g, ''),
    port: port === '' ? 80 : Number(port),
    ...(username === '' ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }),
  };
}

/** A byte stream to the target itself. */
export async function dialTarget(dialing: Dialing, allowed: Allowed): Promise<Socket> {
  const { target, addresses } = allowed;
  if (addresses === undefined) return dialThroughUpstream(dialing, formatHostTarget(target));
  return dialSocket(dialing, { host: target.host, port: target.port, lookup: fixedDialLookup(addresses) });
}

/** A connection for one plain HTTP request: to the target, or to the upstream proxy that forwards it. */
export async function dialForRequest(dialing: Dialing, allowed: Allowed): Promise<Socket> {
  const { upstream } = dialing;
  if (allowed.addresses !== undefined || upstream === undefined) return dialTarget(dialing, allowed);
  return dialSocket(dialing, { host: upstream.host, port: upstream.port });
}

async function dialSocket(dialing: Dialing, options: NetConnectOpts & { host: string; port: number }): Promise<Socket> {
  const { connectMs, idleMs, track } = dialing;
  const socket = connect({ ...options, allowHalfOpen: true, autoSelectFamily: true, noDelay: true });
  track(socket);
  const timer = setTimeout(() => socket.destroy(new Error('timed out')), connectMs);
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve).once('error', reject);
      socket.once('close', () => reject(new Error('closed')));
    });
  } catch (error) {
    throw new Refusal(502, `cannot reach ${formatHostTarget(options)} (${describeDialError(error)})`);
  } finally {
    clearTimeout(timer);
  }
  return socket.setTimeout(idleMs, () => socket.destroy());
}

/** Replaces DNS: whatever name the socket asks for, it gets the addresses that were checked. */
function fixedDialLookup(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv4(address) ? 4 : 6 }));
  return (_name, options, callback) => {
    if (options.all === true) callback(null, all);
    else callback(null, all[0]?.address ?? '', all[0]?.family);
  };
}

async function dialThroughUpstream(dialing: Dialing, authority: string): Promise<Socket> {
  const { connectMs, upstream } = dialing;
  if (upstream === undefined) throw new Error('no upstream proxy');
  const socket = await dialSocket(dialing, { host: upstream.host, port: upstream.port });
  const asked = request({
    createConnection: () => socket,
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...upstreamAuthorization(upstream) },
    setHost: false,
  });
  const timer = setTimeout(() => asked.destroy(new Error('timed out')), connectMs);
  try {
    const { status, head } = await new Promise<{ status: number | undefined; head: Buffer }>((resolve, reject) => {
      asked.once('connect', (response, _, head: Buffer) => resolve({ status: response.statusCode, head }));
      asked.on('error', reject).end();
    });
    if (status !== 200) throw new Error(`status ${status}`);
    if (head.length > 0) socket.unshift(head);
    return socket;
  } catch (error) {
    socket.destroy();
    throw new Refusal(502, `cannot reach ${authority} through the upstream proxy (${describeDialError(error)})`);
  } finally {
    clearTimeout(timer);
  }
}

export const upstreamAuthorization = ({ authorization }: Upstream): Record<string, string> =>
  authorization === undefined ? {} : { 'proxy-authorization': authorization };

function describeDialError(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return error instanceof Error ? error.message : 'unknown';
}
