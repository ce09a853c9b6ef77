// Where a path really leads, links followed step by step, also where its last part doesn't exist yet.

import { lstatSync, realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, sep } from 'node:path';

const LINKS_UNRESOLVED = new Set(['ENOENT', 'ELOOP', 'ENOTDIR', 'EACCES', 'ENAMETOOLONG', 'EPERM', 'EINVAL']);

/** The place a path names, seen from a real folder; `..` leaves the folder a link led to, as it does for the system. */
export function realPath(from: string, path: string): string {
  let at = isAbsolute(path) ? sep : from;
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    at = part === '..' ? dirname(at) : followed(join(at, part));
  }
  return at;
}

/** Both are real. */
export function isInside(root: string, place: string): boolean {
  return place === root || place.startsWith(root.endsWith(sep) ? root : root + sep);
}

export function realRoot(folder: string): string {
  return attempt(() => realpathSync.native(folder)) ?? folder;
}

function followed(place: string): string {
  const isLink = attempt(() => lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink()) === true;
  return isLink ? (attempt(() => realpathSync.native(place)) ?? place) : place;
}

function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof Error && 'code' in error && LINKS_UNRESOLVED.has(String(error.code))) return undefined;
    throw error;
  }
}
