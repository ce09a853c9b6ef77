// Presence of hosts: each renews a signed key that expires by itself.

import * as z from 'zod/mini';
import type { Connection } from './line/redis.ts';
import type { Signer } from './line/signature.ts';

export const PREFIX = 'drover';
const HOST_KEY = `${PREFIX}:host:`;
export const PRESENCE_EVERY_MS = 2_000;
const PRESENCE_MS = 10_000;
const KEYS_MAX = 5_000;
const KEYS_AT_ONCE = 500;

const HOST = z.object({
  id: z.string(),
  name: z.string(),
  address: z.string(), // of its inbox
  version: z.string(), // of drover
  slots: z.number(),
  /** Why it takes no work now. */
  idle: z.optional(z.string()),
  labels: z.array(z.string()),
  /** The attempts that it works on. */
  work: z.array(z.object({ run: z.string(), task: z.string(), attempt: z.number() })),
});

export type PresentHost = z.infer<typeof HOST>;

const SIGNED = z.object({ host: z.string(), signature: z.string() });

export function inboxOfHost(id: string): string {
  return `${PREFIX}:inbox:${id}`;
}

export async function announceHost(redis: Connection, signer: Signer, host: PresentHost): Promise<void> {
  const text = JSON.stringify(host);
  const signature = signer.sign([HOST_KEY, text]).toString('base64');
  await redis.set(HOST_KEY + host.id, JSON.stringify({ host: text, signature }), 'PX', PRESENCE_MS);
}

export async function retractHost(redis: Connection, id: string): Promise<void> {
  await redis.del(HOST_KEY + id);
}

/** Whether a coordinator of this version can give the host tasks with these labels. */
export function isFit(host: PresentHost, version: string, labels: readonly string[]): boolean {
  return host.version === version && labels.every((label) => host.labels.includes(label));
}

export type Presence = { readonly hosts: readonly PresentHost[]; readonly unsigned: number };

/** The hosts that are there, and how many entries were not signed with this key. */
export async function listHosts(redis: Connection, signer: Signer): Promise<Presence> {
  const keys = await listKeys(redis, HOST_KEY);
  const texts = keys.length === 0 ? [] : await redis.mget(keys);
  const hosts = texts.flatMap((text) => (text === null ? [] : [readPresentHost(text, signer)]));
  const known = hosts.filter((host) => host !== undefined);
  return { hosts: known.toSorted((a, b) => (a.name < b.name ? -1 : 1)), unsigned: hosts.length - known.length };
}

/** The keys that begin so. */
export async function listKeys(redis: Connection, beginning: string): Promise<string[]> {
  const keys = new Set<string>();
  let cursor = '0';
  do {
    const [next, found] = await redis.scan(cursor, 'MATCH', `${beginning}*`, 'COUNT', KEYS_AT_ONCE);
    cursor = next;
    for (const key of found) keys.add(key);
  } while (cursor !== '0' && keys.size < KEYS_MAX);
  return [...keys];
}

function readPresentHost(text: string, signer: Signer): PresentHost | undefined {
  try {
    const { host, signature } = SIGNED.parse(JSON.parse(text));
    if (!signer.isSignature(Buffer.from(signature, 'base64'), [HOST_KEY, host])) return undefined;
    return HOST.parse(JSON.parse(host));
  } catch {
    return undefined; // another program's, or another version's
  }
}
