// Files that extend drover: those of the project that count, and those of the user.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { lstatIfThere } from '@drover/core/files/lookup';
import { type FolderFile, readProjectFile, readProjectFolder } from '@drover/trust/project-file';
import type { TrustedFile } from '@drover/trust/project';

export type SourceFile = {
  /** As messages call it. */
  readonly name: string;
  readonly path: string;
  readonly text: string;
  readonly files?: readonly FolderFile[];
  readonly isOwn: boolean; // the user's
};

export type Found = { readonly files: readonly SourceFile[]; readonly warnings: readonly string[] };

export function extensionFilesOfProject(files: readonly TrustedFile[]): readonly SourceFile[] {
  return files.map(({ name, path, text, files: inside }) => ({
    name,
    path,
    text,
    ...(inside !== undefined && { files: inside }),
    isOwn: false,
  }));
}

/** All entries of the user's own folders, in the order of the folders and by name. */
export async function extensionFilesOfUser(
  folders: readonly string[],
  want: { readonly main: string } | { readonly ends: string },
): Promise<Found> {
  const files: SourceFile[] = [];
  const warnings: string[] = [];
  for (const folder of folders) {
    for (const entry of await extensionFileNames(folder)) {
      if ('ends' in want && !entry.endsWith(want.ends)) continue;
      const path = join(folder, entry);
      // A link of the user's own may lead anywhere.
      const read =
        'main' in want ? await readProjectFolder(path, want.main, undefined) : await readProjectFile(path, undefined);
      if (read === undefined) continue;
      if ('problem' in read) warnings.push(`${path} ${read.problem}`);
      else files.push({ name: path, path, isOwn: true, text: read.text, ...(read.files && { files: read.files }) });
    }
  }
  return { files, warnings };
}

async function extensionFileNames(folder: string): Promise<readonly string[]> {
  if ((await lstatIfThere(folder)) === undefined) return [];
  try {
    return (await readdir(folder)).toSorted();
  } catch (error) {
    // Not a folder, or one that may not be read.
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  }
}
