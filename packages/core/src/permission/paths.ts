// Real paths: resolves links one component at a time, even if the last component does not exist yet.

import { lstatSync, realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, sep } from 'node:path';

const LINKS_UNRESOLVED = new Set(['ENOENT', 'ELOOP', 'ENOTDIR', 'EACCES', 'ENAMETOOLONG', 'EPERM', 'EINVAL']);

/** Resolves a path from a real folder. As for the system, `..` leaves the folder that a link leads to. */
export function realPath(from: string, path: string): string {
  let at = isAbsolute(path) ? sep : from;
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    at = part === '..' ? dirname(at) : followedPermissionPath(join(at, part));
  }
  return at;
}

/** Whether `place` is `root` or inside it. Both must be real paths. */
export function isInside(root: string, place: string): boolean {
  return place === root || place.startsWith(root.endsWith(sep) ? root : root + sep);
}

export function realRoot(folder: string): string {
  return undefinedIfPathFails(() => realpathSync.native(folder)) ?? folder;
}

function followedPermissionPath(place: string): string {
  const isLink = undefinedIfPathFails(() => lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink()) === true;
  return isLink ? (undefinedIfPathFails(() => realpathSync.native(place)) ?? place) : place;
}

function undefinedIfPathFails<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof Error && 'code' in error && LINKS_UNRESOLVED.has(String(error.code))) return undefined;
    throw error;
  }
}
