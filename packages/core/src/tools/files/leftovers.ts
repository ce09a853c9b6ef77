// Temporary files that remain if drover is killed during a write: `.<name>.<mark>.drover-new` beside the file.
//
// Guarantees
//   1. Only stale leftovers are removed: regular files of this user, with such a name, whose writer has ended.
//   2. The file of a live writer is not removed while its process runs on this machine or it is under an hour old.
//   3. The search follows no link, skips .git and node_modules, and reads a bounded number of entries.

import { createHash } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { lstat, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

const ENTRIES_MAX = 20_000;
const STALE_MS = 3_600_000;
const LEFT_ALONE = new Set(['.git', 'node_modules']);
const LEFTOVER = /(^|\/)\.[^/]*\.([0-9a-f]{4})([0-9a-f]{6})[0-9a-f]{2}\.drover-new$/;
const HOST = createHash('sha256').update(hostname()).digest('hex').slice(0, 4);

let written = 0;

/** Returns a temporary name. It contains host and process id, so that a later process can detect a stale file. */
export function temporaryFileName(name: string, pid = process.pid): string {
  written = (written + 1) % 256;
  const mark = `${HOST}${pid.toString(16).padStart(6, '0').slice(-6)}${written.toString(16).padStart(2, '0')}`;
  // 50 characters are at most 150 bytes, so the mark fits into a name of 255.
  return `.${name.slice(0, 50)}.${mark}.drover-new`;
}

/** Returns true for the name of a temporary file of drover. */
export function isLeftoverFile(path: string): boolean {
  return LEFTOVER.test(path);
}

/** Removes stale leftovers in a folder and below it. Returns their paths. */
export async function removeLeftoverFiles(top: string): Promise<readonly string[]> {
  const removed: string[] = [];
  const folders = [top];
  let looked = 0;
  for (let folder = folders.shift(); folder !== undefined && looked < ENTRIES_MAX; folder = folders.shift()) {
    // Skip folders that are gone or not readable.
    const entries: readonly Dirent[] = await readdir(folder, { withFileTypes: true }).catch(() => []);
    looked += entries.length;
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !LEFT_ALONE.has(entry.name)) folders.push(path);
      if (entry.isFile() && isLeftoverFile(entry.name) && (await removeFileIfStale(path))) removed.push(path);
    }
  }
  return removed;
}

async function removeFileIfStale(path: string): Promise<boolean> {
  try {
    const { uid, mtimeMs, nlink } = await lstat(path);
    const isOwn = uid === process.getuid?.() && nlink === 1;
    if (!isOwn || !(isFileWriterGone(path) || Date.now() - mtimeMs > STALE_MS)) return false;
    await rm(path);
    return true;
  } catch {
    // Another process removed the file, or the folder is read-only.
    return false;
  }
}

function isFileWriterGone(path: string): boolean {
  const [, , host, pid = ''] = LEFTOVER.exec(path) ?? [];
  return host === HOST && !isFileWriterRunning(Number.parseInt(pid, 16));
}

function isFileWriterRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
