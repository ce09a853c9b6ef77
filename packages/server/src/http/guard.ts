// Request guard: checks the host, then the origin, then the token, before a route sees the request.
//
// The token alone keeps strangers out, since no browser adds it by itself. The host and origin checks are a second
// line of defence, in case a route ever forgets to ask for the token.

import { createHash, timingSafeEqual } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { Refusal } from './problem.ts';

export type Guard = {
  readonly token: string;
  /** Host names with port by which a request may address this server. */
  readonly hosts: () => readonly string[];
  /** Extra origins that may send requests, for example of a reverse proxy in front of this server. */
  readonly origins?: () => readonly string[];
};

/** Returns the refusal of a request, or undefined if the request may proceed. */
export function httpRequestRefusedBecause(request: Request, guard: Guard, needsToken: boolean): Refusal | undefined {
  const { token, hosts, origins = () => [] } = guard;
  const known = hosts().map((host) => host.toLowerCase());
  const { headers } = request;
  const host = headers.get('host')?.toLowerCase();
  if (host === undefined || !known.includes(host))
    return new Refusal(403, 'host.foreign', 'the request is not meant for this server');
  const origin = headers.get('origin');
  if (origin !== null && ![...known.map((name) => `http://${name}`), ...origins()].includes(origin))
    return new Refusal(403, 'origin.foreign', 'the request comes from a page that is not of this server');
  if (!needsToken) return undefined;
  // Browsers send this header even when they send no origin.
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin' && site !== 'none')
    return new Refusal(403, 'origin.foreign', 'the request comes from a page that is not of this server');
  return doesHttpRequestCarryToken(headers, token) ? undefined : UNAUTHORIZED;
}

const UNAUTHORIZED = new Refusal(401, 'unauthorized', 'the token is missing or wrong', {
  detail: 'send it as Authorization: Bearer <token>',
});

function doesHttpRequestCarryToken(headers: Headers, token: string): boolean {
  const [, given] = /^Bearer +(\S+)$/i.exec(headers.get('authorization') ?? '') ?? [];
  return given !== undefined && isSameHttpSecret(token, given);
}

/** Compares in constant time, whatever the lengths of both texts. */
export function isSameHttpSecret(secret: string, given: string): boolean {
  return timingSafeEqual(digestOfHttpSecret(secret), digestOfHttpSecret(given));
}

function digestOfHttpSecret(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Returns the host names of a server at this address. Names from the hosts file are not among them. */
export function httpHostsAt(address: string, port: number): readonly string[] {
  const names = [
    '127.0.0.1',
    'localhost',
    '[::1]',
    ...(isLoopbackHttpAddress(address) ? [] : ownHttpHostNames(address)),
  ];
  // Browsers omit the default port.
  return names.flatMap((name) => (port === 80 ? [name, `${name}:80`] : [`${name}:${port}`]));
}

// IP literals cannot be DNS-rebound, so they are always accepted.
function ownHttpHostNames(address: string): readonly string[] {
  const addresses = isEveryHttpAddress(address)
    ? Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map((own) => own.address))
    : [address];
  return addresses.map((each) => (each.includes(':') ? `[${each}]` : each));
}

/** True if the address means all addresses of this machine. */
export function isEveryHttpAddress(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}

export function isLoopbackHttpAddress(address: string): boolean {
  return address === 'localhost' || address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address);
}
