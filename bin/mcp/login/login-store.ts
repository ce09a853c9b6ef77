// Logins at MCP servers, on disk: one file per server and address, which only its owner can read.
//
// Guarantees
//   1. A file is whole or absent, and never readable by others, not even for a moment.
//   2. One connection at a time changes a login, over all processes of this machine.

import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Lock } from '@drover/core/journal/file/lock';
import { bestEffort } from '@drover/core/promises';
import { isJsonObject, type Json } from '@drover/protocol/json';
import type { LoginStore, StoredLogin } from '@drover/mcp/sdk/oauth/stored-login';
import { errorCodeOf } from '../../start/settings.ts';

const LOCKED_MS_MAX = 30_000;
const LOCK_EVERY_MS = 50;
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM']);

// Work on a login in this process, by file: it waits here, because the lock itself blocks the thread for a moment.
const queues = new Map<string, Promise<unknown>>();

export function openLoginStore(
  home: string,
  { server, url }: { readonly server: string; readonly url: string },
): LoginStore {
  const folder = loginsFolder(home);
  const key = createHash('sha256').update(url).digest('hex').slice(0, 16);
  const file = join(folder, `${server}-${key}.json`);
  return {
    read: () => readLogin(file),
    write: (login) => (login === undefined ? rmSync(file, { force: true }) : writeLogin(file, login)),
    locked: (work) => {
      const turn = bestEffort(queues.get(file) ?? Promise.resolve()).then(() => lockedAcrossProcesses(file, work));
      queues.set(file, turn);
      return turn;
    },
  };
}

/** Every token of every login: values to hide. */
export function listLoginSecrets(home: string): readonly string[] {
  const folder = loginsFolder(home);
  return listLoginFiles(folder).flatMap((name) => {
    const { tokens, client } = readLogin(join(folder, name)) ?? {};
    return [tokens?.access_token, tokens?.refresh_token, client?.client_secret].filter((each) => each !== undefined);
  });
}

function loginsFolder(home: string): string {
  return join(home, 'mcp', 'logins');
}

function listLoginFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.json'));
  } catch (error) {
    if (ABSENT.has(errorCodeOf(error))) return [];
    throw error;
  }
}

/** Undefined if there is none, or if the file holds something else. */
function readLogin(file: string): StoredLogin | undefined {
  try {
    const found = JSON.parse(readFileSync(file, 'utf8')) as Json;
    return isJsonObject(found) && isJsonObject(found['tokens'] ?? null) ? (found as unknown as StoredLogin) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || ABSENT.has(errorCodeOf(error))) return undefined;
    throw error;
  }
}

function writeLogin(file: string, login: StoredLogin): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  rmSync(fresh, { force: true });
  writeFileSync(fresh, JSON.stringify(login), { mode: 0o600, flag: 'wx' });
  renameSync(fresh, file);
}

async function lockedAcrossProcesses<Value>(file: string, work: () => Promise<Value>): Promise<Value> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const lock = await takeLoginLock(`${file}.lock`);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

async function takeLoginLock(path: string): Promise<Lock> {
  const until = performance.now() + LOCKED_MS_MAX;
  for (;;) {
    const lock = Lock.take(path);
    if (lock !== undefined) return lock;
    if (performance.now() > until) throw new Error('another drover has been refreshing its login for 30 s');
    await delay(LOCK_EVERY_MS);
  }
}
