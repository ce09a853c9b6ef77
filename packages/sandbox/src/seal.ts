// Seals paths that are not there: a mount needs something to cover, so an empty folder stands for what is missing.
//
// The first command of a session makes the folders, and its end removes them, unless something was put into them from
// outside meanwhile. Git does not show empty folders. Several sessions may seal the same path.

import { lstatSync, mkdirSync, rmdirSync } from 'node:fs';

const holders = new Map<string, Set<string>>(); // a path that was made here -> who needs it

/** Makes what is missing. Idempotent for each holder. */
export function sealPaths(holder: string, paths: readonly string[]): void {
  for (const path of paths) {
    const known = holders.get(path);
    if (known !== undefined) {
      known.add(holder);
      continue;
    }
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) continue;
    mkdirSync(path);
    holders.set(path, new Set([holder]));
  }
}

/** Removes what no other holder needs. Idempotent. */
export function unsealPaths(holder: string): void {
  for (const [path, known] of holders) {
    if (!known.delete(holder) || known.size > 0) continue;
    holders.delete(path);
    try {
      rmdirSync(path);
    } catch (error) {
      // It is gone, or no longer empty: then it is the user's.
      if (!(error instanceof Error && 'code' in error)) throw error;
    }
  }
}
