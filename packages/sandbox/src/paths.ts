// Paths as the sandbox compares them: real, absolute, by whole names.

import { realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Whether a path is the folder or lies inside it. */
export function isInSandboxPath(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Returns undefined if the path is missing or this user may not read it. */
export function statOrUndefined(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}

/** Resolves links in the part of the path that exists. */
export function realPathForSandbox(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    const above = dirname(path);
    return above === path ? path : join(realPathForSandbox(above), path.slice(above.length));
  }
}
