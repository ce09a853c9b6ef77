// Files and folders that `.drover/include` copies: what they hold, and which entries stay behind.
//
// Guarantees
//   1. No copied link leads out of the repository, or by an absolute path back into the user's checkout.
//   2. Looking stops at a bound of entries, links and bytes, shared by everything that is copied.
//
// Links inside the repository are copied as they are, so node_modules/.bin and pnpm's folders work.

import type { Stats } from 'node:fs';
import { lstat, opendir, readlink, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { isErrorCode } from '../git/removal.ts';
import { isInsideStore } from '../store/store.ts';

const ENTRIES_MAX = 20_000;
const LINKS_MAX = 10_000;
const BYTES_MAX = 256 * 1024 * 1024;

/** Limits of all copies together. */
type CopyTotal = { entries: number; links: number; bytes: number };

type Survey = {
  readonly top: string; // top folder of the repository
  readonly total: CopyTotal;
};

/** The repository's folder as named, and its real path. */
type Top = { readonly named: string; readonly real: string };

/**
 * Returns the entries that are not copied, with the reason; undefined if the limits are exceeded. Adds to the total.
 */
export async function surveySlotCopy(path: string, { top, total }: Survey): Promise<readonly string[] | undefined> {
  const sum = { ...total };
  const leftOut: string[] = [];
  const waiting = [path];
  const folder = { named: top, real: await realpath(top) };
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const stats = await lstat(join(top, at));
    addToSlotCopy(sum, stats);
    if (isSlotCopyTooLarge(sum)) return undefined;
    if (stats.isDirectory()) {
      for await (const { name } of await opendir(join(top, at))) {
        if (sum.entries + waiting.length >= ENTRIES_MAX) return undefined;
        waiting.push(join(at, name));
      }
    } else {
      const problem = await problemWithSlotCopy(join(top, at), stats, folder);
      if (problem !== undefined) leftOut.push(`${at} ${problem}`);
    }
  }
  Object.assign(total, sum);
  return leftOut.toSorted();
}

/** Returns true if an entry of a folder may be copied. */
export async function isCopiedIntoSlot(path: string, top: string): Promise<boolean> {
  const stats = await lstat(path);
  if (stats.isDirectory() || stats.isFile()) return true;
  return (await problemWithSlotCopy(path, stats, { named: top, real: await realpath(top) })) === undefined;
}

function addToSlotCopy(sum: CopyTotal, stats: Stats): void {
  sum.entries += 1;
  if (stats.isSymbolicLink()) sum.links += 1;
  if (!stats.isDirectory()) sum.bytes += stats.size;
}

function isSlotCopyTooLarge({ entries, links, bytes }: CopyTotal): boolean {
  return entries > ENTRIES_MAX || links > LINKS_MAX || bytes > BYTES_MAX;
}

async function problemWithSlotCopy(path: string, stats: Stats, top: Top): Promise<string | undefined> {
  if (stats.isFile()) return undefined;
  return stats.isSymbolicLink() ? problemWithCopiedLink(path, top) : 'is neither a file nor a folder';
}

async function problemWithCopiedLink(path: string, { named, real }: Top): Promise<string | undefined> {
  const target = await readlink(path);
  const leadsOut = 'is a link that leads out of the repository';
  if (!isInsideStore(resolve(dirname(path), target), named)) return leadsOut;
  if (isAbsolute(target)) return 'is an absolute link, which leads back into your checkout: make it relative';
  try {
    // Links in the middle of the path can lead elsewhere than its text says.
    return isInsideStore(await realpath(path), real) ? undefined : leadsOut;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    if (isErrorCode(error, 'ELOOP')) return 'is a loop of links';
    throw error;
  }
}
