// Looks up a path that may not exist.

import type { Stats } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';

// The path does not exist, or drover may not see it. The last code is for a path with a NUL character.
const NOT_THERE = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG', 'ERR_INVALID_ARG_VALUE'];

/** Returns undefined if the path does not exist or may not be seen. Follows links. */
export function statIfThere(path: string): Promise<Stats | undefined> {
  return stat(path).catch(undefinedIfFileAbsent);
}

/** Like statIfThere, for the path itself: a link is not followed. */
export function lstatIfThere(path: string): Promise<Stats | undefined> {
  return lstat(path).catch(undefinedIfFileAbsent);
}

function undefinedIfFileAbsent(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && NOT_THERE.includes(String(error.code))) return undefined;
  throw error;
}
