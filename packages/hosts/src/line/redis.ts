// Connections to Redis, and the checks of an address before anything is spent.
//
// A cut connection emits nothing for half a minute by itself. So every command has a timeout, and a socket without
// data for five seconds is closed. Commands fail at once while there is no connection: the line sends again.

import { Redis, type RedisOptions } from 'ioredis';
import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { UsageError } from '@drover/core/errors';
import { bestEffort } from '@drover/core/promises';

const COMMAND_MS_MAX = 4_000; // never 0: ioredis would time out at once
const SOCKET_MS_MAX = 5_000;
const CONNECT_MS_MAX = 5_000;
const LOOK_MS = 200;
const RECONNECT_MS_MAX = 1_000;
const OLDEST = [6, 2] as const;

export type QueueAddress = {
  readonly url: string;
  /** Shared by the coordinator and all hosts. */
  readonly key: string | undefined;
};

export type Connection = Redis;

const LINE = {
  protocol: 2, // whose answers have the shapes that Redis documents for XREAD
  commandTimeout: COMMAND_MS_MAX,
  socketTimeout: SOCKET_MS_MAX,
  connectTimeout: CONNECT_MS_MAX,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  keepAlive: 1_000,
  retryStrategy: (times) => Math.min(times * 100, RECONNECT_MS_MAX),
} satisfies RedisOptions;

/** A connection of a line. It reconnects by itself, and its commands fail at once meanwhile. */
export function connectRedis({ url }: QueueAddress): Connection {
  return silenceRedisErrors(new Redis(parseRedisAddress(url), { ...LINE, lazyConnect: false }));
}

/** A connection as BullMQ wants it: commands wait for the connection. */
export function connectRedisForQueue({ url }: QueueAddress): Connection {
  const { commandTimeout: _, socketTimeout: __, ...rest } = LINE;
  return silenceRedisErrors(
    new Redis(parseRedisAddress(url), { ...rest, maxRetriesPerRequest: null, enableOfflineQueue: true }),
  );
}

/** Resolves when the connection is open. */
export async function isRedisReady(connection: Connection, signal?: AbortSignal): Promise<void> {
  while (connection.status !== 'ready' && signal?.aborted !== true) {
    const ready = Promise.withResolvers<void>();
    const wake = () => ready.resolve();
    connection.once('ready', wake);
    await Promise.race([ready.promise, bestEffort(delay(LOOK_MS, undefined, signal === undefined ? {} : { signal }))]);
    connection.off('ready', wake);
  }
}

/** Without a listener, each failed connection would be printed. `close` and `ready` say all that is needed. */
function silenceRedisErrors(redis: Connection): Connection {
  redis.on('error', () => undefined);
  return redis;
}

/** Throws UsageError if the queue cannot be used as it is. */
export async function checkRedisQueue({ url, key }: QueueAddress): Promise<void> {
  const address = redisAddressWithoutPassword(url);
  const isNear = isRedisOnLoopback(url);
  if (!isNear && (key ?? '') === '')
    throw new UsageError(
      `the queue ${address} is not on this machine, so its jobs must be signed: set DROVER_QUEUE_KEY to the same long random text here and on every host`,
    );
  const redis = silenceRedisErrors(
    new Redis(parseRedisAddress(url), { ...LINE, lazyConnect: true, retryStrategy: () => null }),
  );
  let last: Error | undefined;
  redis.on('error', (error: Error) => (last = error));
  try {
    await redis.connect().catch((error: Error) => {
      throw redisUnreachable(address, last ?? error);
    });
    await checkRedisServer(redis, address);
    if (!isNear) await checkRedisPassword(url, address);
  } finally {
    redis.disconnect();
  }
}

async function checkRedisServer(redis: Connection, address: string): Promise<void> {
  const info = await redis.info().catch((error: Error) => {
    throw redisUnreachable(address, error);
  });
  const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? '0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
    throw new UsageError(
      `the queue ${address} is Redis ${version}, and drover needs ${OLDEST.join('.')} or newer: install a newer one there`,
    );
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction';
  if (policy !== 'noeviction')
    throw new UsageError(
      `the queue ${address} evicts keys when its memory is full (maxmemory-policy ${policy}), which would lose work: set maxmemory-policy noeviction`,
    );
}

/** Anyone who reaches a Redis without a password reads prompts and code from it. */
async function checkRedisPassword(url: string, address: string): Promise<void> {
  const open = new URL(url);
  open.password = '';
  open.username = '';
  const redis = silenceRedisErrors(new Redis(open.href, { ...LINE, lazyConnect: true, retryStrategy: () => null }));
  try {
    await redis.connect();
    await redis.ping();
  } catch {
    return; // it wants a password
  } finally {
    redis.disconnect();
  }
  throw new UsageError(
    `the queue ${address} lets anyone in without a password: set requirepass or ACL users there, and write redis://user:password@host`,
  );
}

function redisUnreachable(address: string, error: Error): UsageError {
  const { message } = error;
  if (/NOAUTH|WRONGPASS|invalid password|without any password/i.test(message))
    return new UsageError(`the queue ${address} refuses the password: write redis://user:password@host (${message})`);
  if (/NOPERM/.test(message))
    return new UsageError(
      `the queue ${address} denies a command: docs/hosts.md lists what its user needs (${message})`,
    );
  return new UsageError(
    `no Redis answers at ${address} (${message || 'no connection'}): start one there (redis-server), or correct --queue`,
  );
}

/** The address as it may be shown. */
export function redisAddressWithoutPassword(url: string): string {
  const shown = new URL(parseRedisAddress(url));
  shown.password = '';
  shown.username = '';
  return shown.href.replace(/\/$/, '');
}

/** Throws UsageError for an invalid address of Redis. */
function parseRedisAddress(url: string): string {
  if (!URL.canParse(url) || !/^(rediss?|unix):$/.test(new URL(url).protocol))
    throw new UsageError(`'${url.replace(/\/\/.*@/, '//')}' is not an address of Redis: write redis://host:6379`);
  return url;
}

function isRedisOnLoopback(url: string): boolean {
  const { protocol, hostname } = new URL(parseRedisAddress(url));
  if (protocol === 'unix:') return true;
  const host = hostname.replace(/^\[|\]$/g, '');
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
