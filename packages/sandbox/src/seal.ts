// Seals what a mount cannot cover: paths that are not there, and symbolic links.
//
// An empty folder stands for what is missing, and a mount covers that. The first command of a session makes the folders,
// and the end of the session removes them, unless something was put into them from outside meanwhile. Git does not show
// empty folders. Several sessions may seal the same path.
//
// Two things a mount cannot do: cover a link, and stay when another drover in the same folder removes the empty folder
// under it. So when a command ends, a link that was replaced is restored, and what took the place of a link or of an
// empty folder is renamed.

import { lstatSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmdirSync, symlinkSync } from 'node:fs';

const holders = new Map<string, Set<string>>(); // a folder that was made here -> the sessions that need it

/** Makes what is missing, once for each holder. Dispose of it when the command has ended. */
export function sealPaths(holder: string, paths: readonly string[]): Disposable {
  const guards = paths.flatMap((path) => {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
      mkdirSync(path);
      if (!holders.has(path)) holders.set(path, new Set());
    }
    holders.get(path)?.add(holder);
    return guardOf(path);
  });
  return {
    [Symbol.dispose]() {
      for (const guard of guards) guard();
    },
  };
}

/** Whether sealing these paths would make a folder. */
export function hasUnsealed(paths: readonly string[]): boolean {
  return paths.some((path) => lstatSync(path, { throwIfNoEntry: false }) === undefined);
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

/** What to do after a command so that a link or an empty folder is as it was; nothing for what a mount covers. */
function guardOf(path: string): readonly (() => void)[] {
  if (lstatSync(path).isSymbolicLink()) {
    const target = readlinkSync(path);
    return [() => restoreLink(path, target)];
  }
  if (!isEmptyFolder(path)) return [];
  const before = identityOf(path);
  return [
    () => {
      const now = identityOf(path);
      if (now !== undefined && now !== before && !isEmptyFolder(path)) setAside(path);
    },
  ];
}

/** Inode numbers are used again, so the time of birth counts too. */
function identityOf(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  return found && `${found.isDirectory()} ${found.ino} ${found.birthtimeNs}`;
}

function isEmptyFolder(path: string): boolean {
  return lstatSync(path).isDirectory() && readdirSync(path).length === 0;
}

function restoreLink(path: string, target: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isSymbolicLink() === true && readlinkSync(path) === target) return;
  if (found !== undefined) setAside(path);
  symlinkSync(target, path);
}

function setAside(path: string): void {
  renameSync(path, `${path}.replaced-${Date.now()}`);
}
