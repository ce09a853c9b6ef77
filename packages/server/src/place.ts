// Checks folders that clients name: only folders inside the served folder are accepted, after following links.

import { realpath, stat } from 'node:fs/promises';
import { relative, resolve, sep } from 'node:path';
import { type Refusal, httpUnfitBody } from './http/problem.ts';

/** Returns the real path of the folder, or a refusal. */
export async function servedFolderInside(root: string, named: string | undefined): Promise<string | Refusal> {
  const refuse = (message: string): Refusal => httpUnfitBody([{ path: 'cwd', message }]);
  if (named?.includes('\0') === true) return refuse('a path has no zero bytes');
  try {
    const [base, folder] = await Promise.all([realpath(root), realpath(resolve(root, named ?? '.'))]);
    // The refusal does not reveal whether a folder exists outside the served folder.
    if (!isInsideServedFolder(base, folder) || !(await stat(folder)).isDirectory()) return refuse(NO_FOLDER);
    return folder;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return refuse(NO_FOLDER);
    throw error;
  }
}

const NO_FOLDER = 'there is no such folder inside of the one that is served';

export function isInsideServedFolder(base: string, folder: string): boolean {
  const way = relative(base, folder);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`));
}
