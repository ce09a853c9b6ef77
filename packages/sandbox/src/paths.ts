// Paths as the sandbox compares them: real, absolute, by whole names.

import { realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Equal, or inside. */
export function isIn(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Undefined where there is nothing, and where this user may not look: a variable may name another user's folder. */
export function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}

/** Links followed as far as there is something. */
export function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    const above = dirname(path);
    return above === path ? path : join(realOf(above), path.slice(above.length));
  }
}
