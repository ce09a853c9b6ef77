// The token of the server: made at its first start, kept in a file that only its owner can read.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, link, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { errorCodeOf } from '../start/settings.ts';

const TOKEN_BYTES = 32;
const TOKEN = /^[\w-]{32,}$/;
const OWNER_ONLY = 0o600;

export type KeptToken = { readonly token: string; readonly path: string };

/** The path of the token. */
export function serverTokenPath(home: string): string {
  return join(home, 'server-token');
}

export async function openServerToken(home: string): Promise<KeptToken> {
  const path = serverTokenPath(home);
  try {
    await mkdir(home, { recursive: true });
    await makeServerToken(path);
    // The user may have copied it here with ordinary permissions.
    if (((await stat(path)).mode & 0o777) !== OWNER_ONLY) await chmod(path, OWNER_ONLY);
    const token = (await readFile(path, 'utf8')).trim();
    if (TOKEN.test(token)) return { token, path };
  } catch (error) {
    throw new UsageError(`the server's token can't be kept in ${path} (${errorCodeOf(error)})`, { cause: error });
  }
  throw new UsageError(`${path} holds no token; remove it, and a new one is made`);
}

/** Whole or not at all: another server that starts at the same moment never sees half of one. */
async function makeServerToken(path: string): Promise<void> {
  if (existsSync(path)) return;
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(draft, `${randomBytes(TOKEN_BYTES).toString('base64url')}\n`, { mode: OWNER_ONLY, flag: 'wx' });
    await link(draft, path);
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
