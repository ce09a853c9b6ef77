// Seals what a mount cannot cover: paths that are not there, and symbolic links.
//
// Guarantees
//   1. An empty folder stands for a missing path, and a mount covers it. Git does not show empty folders.
//   2. The first command of a session creates these folders. The end of the session removes those that are still empty.
//   3. Several sessions may seal the same path. The last one removes its folder.
//   4. After a command, a replaced link is restored, and the file that replaced a link or an empty folder is renamed.
//      A mount cannot cover a link, and it is lost if another drover removes the empty folder below it.

import { lstatSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmdirSync, symlinkSync } from 'node:fs';

const holders = new Map<string, Set<string>>(); // a folder that was made here -> the sessions that need it

/** Creates folders for missing paths. Dispose of the result when the command has ended. */
export function sealSandboxPaths(holder: string, paths: readonly string[]): Disposable {
  const guards = paths.flatMap((path) => {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
      mkdirSync(path);
      if (!holders.has(path)) holders.set(path, new Set());
    }
    holders.get(path)?.add(holder);
    return guardOfSealedPath(path);
  });
  return {
    [Symbol.dispose]() {
      for (const guard of guards) guard();
    },
  };
}

/** Whether sealing these paths would make a folder. */
export function hasUnsealedSandboxPaths(paths: readonly string[]): boolean {
  return paths.some((path) => lstatSync(path, { throwIfNoEntry: false }) === undefined);
}

/** Removes the folders that no other holder needs. Idempotent. */
export function unsealSandboxPaths(holder: string): void {
  for (const [path, known] of holders) {
    if (!known.delete(holder) || known.size > 0) continue;
    holders.delete(path);
    try {
      rmdirSync(path);
    } catch (error) {
      // The folder is gone, or has files of the user.
      if (!(error instanceof Error && 'code' in error)) throw error;
    }
  }
}

/** Returns the repairs to run after a command; none if a mount protects the path. */
function guardOfSealedPath(path: string): readonly (() => void)[] {
  if (lstatSync(path).isSymbolicLink()) {
    const target = readlinkSync(path);
    return [() => restoreSealedLink(path, target)];
  }
  if (!isSealedFolderEmpty(path)) return [];
  const before = identityOfSealedPath(path);
  return [
    () => {
      const now = identityOfSealedPath(path);
      if (now !== undefined && now !== before && !isSealedFolderEmpty(path)) setAsideSealedPath(path);
    },
  ];
}

/** Inode numbers are used again, so the time of birth counts too. */
function identityOfSealedPath(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  return found && `${found.isDirectory()} ${found.ino} ${found.birthtimeNs}`;
}

function isSealedFolderEmpty(path: string): boolean {
  return lstatSync(path).isDirectory() && readdirSync(path).length === 0;
}

function restoreSealedLink(path: string, target: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isSymbolicLink() === true && readlinkSync(path) === target) return;
  if (found !== undefined) setAsideSealedPath(path);
  symlinkSync(target, path);
}

function setAsideSealedPath(path: string): void {
  renameSync(path, `${path}.replaced-${Date.now()}`);
}
