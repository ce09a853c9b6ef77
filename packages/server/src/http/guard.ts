// Who may ask at all. Whatever a request wants, it is looked at in this order: is it meant for this server
// (a name that leads here by a trick is not), does it come from a page of this server or from no page at
// all, and does it carry the token.
//
// The token alone keeps strangers out, since no browser adds it by itself. The rest is there for the day on
// which somebody leaves it out somewhere.

import { createHash, timingSafeEqual } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { Refusal } from './problem.ts';

export type Guard = {
  readonly token: string;
  /** What a request may call this server: names with their port. */
  readonly hosts: () => readonly string[];
  /** Pages that may ask besides those of this server under its own names: of whatever stands in front of it. */
  readonly origins?: () => readonly string[];
};

/** Why a request is refused, or undefined where it may go on. */
export function refusedBecause(request: Request, guard: Guard, needsToken: boolean): Refusal | undefined {
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
  // A browser says so itself, also where it sends no origin.
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin' && site !== 'none')
    return new Refusal(403, 'origin.foreign', 'the request comes from a page that is not of this server');
  return carriesToken(headers, token) ? undefined : UNAUTHORIZED;
}

const UNAUTHORIZED = new Refusal(401, 'unauthorized', 'the token is missing or wrong', {
  detail: 'send it as Authorization: Bearer <token>',
});

function carriesToken(headers: Headers, token: string): boolean {
  const [, given] = /^Bearer +(\S+)$/i.exec(headers.get('authorization') ?? '') ?? [];
  return given !== undefined && isSame(token, given);
}

/** Takes the same time wherever they differ, and however long either is. */
export function isSame(secret: string, given: string): boolean {
  return timingSafeEqual(digest(secret), digest(given));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** The names of a server that listens at this address: a name in the file of hosts that leads here is none. */
export function hostsAt(address: string, port: number): readonly string[] {
  const names = ['127.0.0.1', 'localhost', '[::1]', ...(isLoopback(address) ? [] : ownNames(address))];
  // Browsers leave out the port that goes without saying.
  return names.flatMap((name) => (port === 80 ? [name, `${name}:80`] : [`${name}:${port}`]));
}

// A number leads to nowhere else, whoever has a name lead here.
function ownNames(address: string): readonly string[] {
  const addresses = isEvery(address)
    ? Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map((own) => own.address))
    : [address];
  return addresses.map((each) => (each.includes(':') ? `[${each}]` : each));
}

/** All addresses of this machine. */
export function isEvery(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}

export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address);
}
