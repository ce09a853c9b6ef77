// The decision about one target: parsed, matched against the rules, resolved once, its addresses checked.
//
// Guarantees
//   1. A name that no rule permits is never resolved.
//   2. An allowed verdict carries the addresses that were checked; `dial.ts` connects to these and to no others.
//   3. With an upstream proxy, names are not resolved here: their addresses are the upstream's business.

import { lookup } from 'node:dns/promises';
import { canonicalAddress, findForbiddenAddress, isLoopbackTarget } from './addresses.ts';
import { formatHostRule, type HostRule, parseHostTarget, doHostRulesPermit, type Target } from './hosts.ts';
import { Refusal } from './refusal.ts';

/** One connection or plain HTTP request, reported when it was decided. */
export type Connection = {
  readonly host: string;
  readonly port: number; // 0 if the client named no valid target
  readonly allowed: boolean;
  readonly reason?: string;
};

export type Resolve = (host: string) => Promise<readonly string[]>;

export type Policy = {
  readonly rules: readonly HostRule[];
  readonly resolve?: Resolve;
  readonly viaUpstream: boolean;
  readonly resolveMs: number;
  readonly onConnection: (connection: Connection) => void;
};

/** Without addresses, the upstream proxy is asked for the target by name. */
export type Allowed = { readonly target: Target; readonly addresses?: readonly string[] };

const LOOPBACK = ['127.0.0.1', '::1'];
const ADDRESSES_MAX = 16;
const HOST_CHARS_MAX = 253;

/** Returns what may be dialled, or throws a Refusal. Reports the connection exactly once. */
export async function decideConnection(policy: Policy, authority: string, defaultPort?: number): Promise<Allowed> {
  const { onConnection } = policy;
  let target: Target;
  try {
    target = parseHostTarget(authority, defaultPort);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    onConnection({ host: printableTarget(authority), port: 0, allowed: false, reason });
    throw new Refusal(400, reason);
  }
  const { host, port } = target;
  try {
    const allowed = await checkConnectionTarget(policy, target);
    onConnection({ host, port, allowed: true });
    return allowed;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    // A name without addresses was permitted, but there is nothing to connect to.
    onConnection({ host, port, allowed: error.status !== 403, reason: error.message });
    throw error;
  }
}

async function checkConnectionTarget(policy: Policy, target: Target): Promise<Allowed> {
  const { rules, viaUpstream } = policy;
  const { host, kind } = target;
  if (!doHostRulesPermit(rules, target))
    throw new Refusal(403, `the sandbox does not allow ${host}; allow it with --net ${formatHostRule(target)}`);
  if (host === 'localhost') return { target, addresses: LOOPBACK };
  if (viaUpstream && !isLoopbackTarget(target)) return { target };
  if (kind === 'address') return { target, addresses: [host] };
  const addresses = await resolveTargetOnce(policy, host);
  const forbidden = findForbiddenAddress(rules, target, addresses);
  if (forbidden === undefined) return { target, addresses };
  const { address, kind: what } = forbidden;
  const rule = formatHostRule({ host: address, port: target.port });
  throw new Refusal(
    403,
    `the sandbox does not allow ${host}: it resolves to ${address}, ${what}; allow it with --net ${rule}`,
  );
}

/** All addresses of a name, in canonical form. One unreadable answer spoils them all. */
async function resolveTargetOnce(
  { resolve = resolveTargetName, resolveMs }: Policy,
  host: string,
): Promise<readonly string[]> {
  const answers = await resolveWithDeadline(resolve(host), resolveMs).catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer';
    throw new Refusal(502, `cannot resolve ${host} (${code})`);
  });
  const addresses = answers.slice(0, ADDRESSES_MAX).map(canonicalAddress);
  const known = addresses.filter((address) => address !== undefined);
  if (known.length === 0 || known.length < addresses.length)
    throw new Refusal(502, `cannot resolve ${host} (no usable address)`);
  return known;
}

const resolveTargetName: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

async function resolveWithDeadline<T>(promise: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('timed out')), ms).unref();
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

const printableTarget = (text: string): string => text.slice(0, HOST_CHARS_MAX).replaceAll(/[^\u0021-\u007e]/g, '?');
