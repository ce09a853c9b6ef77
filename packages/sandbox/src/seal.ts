// Seals what a mount cannot cover: paths that are not there, and symbolic links.
//
// An empty folder stands for what is missing, and a mount covers that. The first command of a session makes the folders,
// and the end of the session removes them, unless something was put into them from outside meanwhile. Git does not show
// empty folders. Several sessions may seal the same path.
//
// A link that a command replaced is restored when the command ends, and what took its place is kept beside it.

import { lstatSync, mkdirSync, readlinkSync, renameSync, rmdirSync, symlinkSync } from 'node:fs';

const holders = new Map<string, Set<string>>(); // a folder that was made here -> the sessions that need it

/** Makes what is missing, once for each holder. Disposing, when the command has ended, restores links. */
export function sealPaths(holder: string, paths: readonly string[]): Disposable {
  const links = new Map<string, string>();
  for (const path of paths) {
    const known = holders.get(path);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (known !== undefined) known.add(holder);
    else if (found?.isSymbolicLink() === true) links.set(path, readlinkSync(path));
    else if (found === undefined) {
      mkdirSync(path);
      holders.set(path, new Set([holder]));
    }
  }
  return { [Symbol.dispose]: () => links.forEach((target, path) => restoreLink(path, target)) };
}

/** Removes the folders that no other holder needs. Idempotent. */
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

function restoreLink(path: string, target: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isSymbolicLink() === true && readlinkSync(path) === target) return;
  if (found !== undefined) renameSync(path, `${path}.replaced-${Date.now()}`);
  symlinkSync(target, path);
}
