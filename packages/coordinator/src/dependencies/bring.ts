// Brings the installed dependencies of a checkout into a workspace.
//
// Guarantees
//   1. In a sandbox that can mount, commands see the checkout's folder read-only. Only `.cache` and `.vite` can be
//      written, in a private folder of the attempt.
//   2. Elsewhere a workspace gets hard links to a private copy, see linked.ts.
//   3. Never a symlink to the checkout: links between the packages of a monorepo lead to the worker's own code.

import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { BroughtFolder } from '@drover/sandbox/policy';
import { isErrorCode } from '../git/removal.ts';

/** Folders that build tools write in. */
export const CACHES = ['.cache', '.vite'];

export type Dependencies = {
  /** Paths from the top of the repository. */
  readonly folders: readonly string[];
  /** `mount`: the sandbox shows them. `link`: the workspace gets hard links to a private copy. */
  readonly how: 'mount' | 'link';
};

/** The mounts of a workspace. Makes the folders that they need; skips a folder whose package the commit lacks. */
export function mountDependencies(folders: readonly string[], place: MountPlace): readonly BroughtFolder[] {
  const { top, tree, box } = place;
  return folders.flatMap((path, n) => {
    const [from, at] = [join(top, path), join(tree, path)];
    if (!isDependencyFolder(from) || !isOwnDependencyFolder(dirname(at))) return [];
    const found = lstatSync(at, { throwIfNoEntry: false });
    if (found === undefined) mkdirSync(at);
    else if (!found.isDirectory()) return [];
    const caches = CACHES.filter((name) => isDependencyMountPoint(join(from, name))).map((name) => {
      const own = join(box, 'caches', String(n), name);
      mkdirSync(own, { recursive: true });
      return { name, from: own };
    });
    return [{ from: realpathSync(from), at, caches }];
  });
}

type MountPlace = { readonly top: string; readonly tree: string; readonly box: string };

/** A mount needs an existing folder, so an empty one is made in the checkout's ignored folder. */
function isDependencyMountPoint(path: string): boolean {
  try {
    mkdirSync(path, { recursive: true });
    return isDependencyFolder(path);
  } catch (error) {
    if (isErrorCode(error, 'EACCES', 'EROFS', 'EEXIST', 'ENOTDIR', 'EPERM')) return false;
    throw error;
  }
}

export function isDependencyFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** A commit may have a link where the user has a folder, and it could lead anywhere. */
export function isOwnDependencyFolder(path: string): boolean {
  return isDependencyFolder(path) && realpathSync(path) === path;
}
