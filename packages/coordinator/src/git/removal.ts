// Removes folders that workers left, also unreadable ones and ones deeper than the longest path.
//
// A folder is renamed first, which is cheap for any size, and removed later. After a crash the next removal finds the
// renamed folders.

import { spawn } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { chmod, lstat, readdir } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';

const FOLDERS_OPENED_MAX = 100_000;
const BUSY_MS_MAX = 2; // entries after which the loop yields
const SLASH = Buffer.from('/');

export type Path = string | Buffer;

/** Returns true if the folder is gone from its place. Links are moved, never followed. */
export function setFolderAside(path: Path, trash: string): boolean {
  try {
    moveFolderAside(path, trash);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return setLockedFolderAside(path, trash);
    throw error;
  }
}

// The trash folder may be missing, and moving a folder needs write permission inside it.
function setLockedFolderAside(path: Path, trash: string): boolean {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return true;
    if (found.isDirectory()) chmodSync(path, 0o700);
    mkdirSync(trash, { recursive: true });
    moveFolderAside(path, trash);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return isErrorCode(error, 'ENOENT');
    throw error;
  }
}

function moveFolderAside(path: Path, trash: string): void {
  renameSync(path, join(trash, randomUUID()));
}

/** Removes a folder with its content. Throws if that fails. */
export async function removeFolderTree(path: string): Promise<void> {
  try {
    await removeOpenTree(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    await openUpTree(path);
    await removeDeepTree(path);
  }
}

// Synchronous, because awaiting each file costs more than the removal; yields now and then.
async function removeOpenTree(top: string): Promise<void> {
  let since = performance.now();
  const remove = async (path: Buffer): Promise<void> => {
    for (const entry of readdirSync(path, { withFileTypes: true, encoding: 'buffer' })) {
      const place = Buffer.concat([path, SLASH, entry.name]);
      if (entry.isDirectory()) await remove(place);
      else unlinkSync(place);
      if (performance.now() - since < BUSY_MS_MAX) continue;
      await nextTurn();
      since = performance.now();
    }
    rmdirSync(path);
  };
  const found = lstatSync(top, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) await remove(Buffer.from(top));
  else if (found !== undefined) unlinkSync(top);
}

async function openUpTree(path: string): Promise<void> {
  const waiting: Buffer[] = [Buffer.from(path)];
  for (let n = 0; n < FOLDERS_OPENED_MAX; n++) {
    const folder = waiting.pop();
    if (folder === undefined) return;
    try {
      if (!(await lstat(folder)).isDirectory()) continue;
      await chmod(folder, 0o700);
      for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
        if (entry.isDirectory()) waiting.push(Buffer.concat([folder, Buffer.from('/'), entry.name]));
      }
    } catch (error) {
      // The folder is too deep, or gone: the next step reports whatever remains.
      if (!(error instanceof Error && 'code' in error)) throw error;
    }
  }
}

// Node uses whole paths, which are limited to 4,096 bytes; this command has no such limit.
function removeDeepTree(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('rm', ['-rf', '--', path], { stdio: 'ignore', env: { PATH: '/usr/bin:/bin' } });
    child.once('error', reject);
    child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(`${path} can't be removed`))));
  });
}

export function isErrorCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
