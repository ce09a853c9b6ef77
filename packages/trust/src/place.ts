// Finds the folders in which a project's files are looked for, and the repository to which approvals are bound.

import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { statIfThere } from '@drover/core/files/lookup';

/** Lists the folders from here up to the top of the repository; without a repository, only this folder. */
export async function projectFoldersForTrust(cwd: string): Promise<readonly string[]> {
  const folders: string[] = [];
  for (let folder = cwd; ; folder = dirname(folder)) {
    folders.push(folder);
    if ((await statIfThere(join(folder, '.git'))) !== undefined) return folders;
    if (dirname(folder) === folder) return folders.slice(0, 1);
  }
}

export type ProjectPlace = {
  /** The top of the repository, with all links resolved. */
  readonly repository: string;
  /** From the folder in use up to the top, with all links resolved. */
  readonly folders: readonly string[];
};

export async function projectPlaceForTrust(cwd: string): Promise<ProjectPlace> {
  const real = await realpath(cwd);
  const folders = await projectFoldersForTrust(real);
  return { repository: folders.at(-1) ?? real, folders };
}
