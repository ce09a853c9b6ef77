// Reads files and folders of a project with the digest by which they are approved.
//
// Guarantees
//   1. The digest is that of the bytes that are returned, so a file that changes later changes nothing.
//   2. A link that leads out of the repository is refused, for a file, a folder and every file in a folder.
//   3. A folder's digest covers the path, the bytes and the executable bit of every file in it. A folder with more
//      than FILES_MAX files, or a file larger than FOLDER_FILE_BYTES_MAX, is refused.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, readdir, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { MB, readOwnFile } from '@drover/core/files/own-file';
import { lstatIfThere } from '@drover/core/files/lookup';

const FILES_MAX = 500;
const DEPTH_MAX = 8;
const FOLDER_FILE_BYTES_MAX = 16 * MB;

/** A file of a folder. */
export type FolderFile = { readonly name: string; readonly sha256: string; readonly isExecutable: boolean };

export type ReadEntry = {
  /** The text of the file, or of the folder's main file. */
  readonly text: string;
  readonly sha256: string;
  /** All files of a folder, sorted by name. */
  readonly files?: readonly FolderFile[];
};

/** `problem` continues a sentence that starts with the path. */
export type Unreadable = { readonly problem: string };

/** Returns undefined if there is no such file. Without a repository, links may lead anywhere. */
export async function readProjectFile(
  path: string,
  repository: string | undefined,
): Promise<ReadEntry | Unreadable | undefined> {
  const found = await readOwnFile({ path, within: repository });
  if (found.kind === 'missing') return undefined;
  if (found.kind === 'refused') return { problem: `${found.problem}; ${found.fix}` };
  const text = decodeProjectFile(found.bytes);
  return text === undefined
    ? { problem: 'is not UTF-8 text; save it as UTF-8' }
    : { text, sha256: sha256OfProjectFile(found.bytes) };
}

/** Reads a folder that has a file `main`. Returns undefined if it has none. */
export async function readProjectFolder(
  path: string,
  main: string,
  repository: string | undefined,
): Promise<ReadEntry | Unreadable | undefined> {
  if ((await lstatIfThere(join(path, main))) === undefined) return undefined;
  if (repository !== undefined && !(await isProjectFileWithin(path, repository)))
    return { problem: 'is a link that leads out of the repository; copy it' };
  const names = await projectFileNamesIn(path, '', DEPTH_MAX);
  if (names === undefined) return { problem: `holds more than ${FILES_MAX} files; remove those it does not need` };
  const files: FolderFile[] = [];
  let text: string | undefined;
  for (const name of names) {
    const at = join(path, name);
    const found = await readOwnFile({ path: at, within: repository, bytesMax: FOLDER_FILE_BYTES_MAX });
    if (found.kind !== 'read') return { problem: `cannot be used: ${name} ${found.problem}; ${found.fix}` };
    files.push({ name, sha256: sha256OfProjectFile(found.bytes), isExecutable: await isProjectFileExecutable(at) });
    if (name !== main) continue;
    text = decodeProjectFile(found.bytes);
    if (text === undefined || found.bytes.length > MB) return { problem: `cannot be used: ${main} is not UTF-8 text` };
  }
  if (text === undefined) return { problem: `cannot be used: ${main} is not a regular file` };
  const lines = files.map((file) => JSON.stringify([file.name, file.sha256, file.isExecutable]));
  return { text, sha256: sha256OfProjectFile(Buffer.from(lines.join('\n'))), files };
}

/** Lists the files below a folder, sorted; undefined if there are too many. */
async function projectFileNamesIn(
  folder: string,
  below: string,
  depth: number,
): Promise<readonly string[] | undefined> {
  if (depth === 0) return undefined;
  const entries = await readdir(join(folder, below), { withFileTypes: true });
  const names: string[] = [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`;
    const inside = entry.isDirectory() ? await projectFileNamesIn(folder, name, depth - 1) : [name];
    if (inside === undefined || names.length + inside.length > FILES_MAX) return undefined;
    names.push(...inside);
  }
  return names;
}

async function isProjectFileWithin(path: string, repository: string): Promise<boolean> {
  const below = relative(await realpath(repository), await realpath(path));
  return below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below);
}

async function isProjectFileExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}

function sha256OfProjectFile(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function decodeProjectFile(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
