// File access of the tools: opens only regular files, and replaces files atomically.

import { constants, type Stats } from 'node:fs';
import { access, type FileHandle, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ToolError } from '../../errors.ts';
import { outputByteSize, isPlainOutput } from '../output/bytes.ts';
import { checkHeldFile, type HeldFolder, holdFileFolder } from './held.ts';
import { temporaryFileName } from './leftovers.ts';
import { fileErrorCode, type Place, unusableToolPath } from './paths.ts';
import { bestEffort } from '../../promises.ts';

const TEXT_BYTES_MAX = 10_000_000;
const NEAR_NAMES_MAX = 3;
const NEAR_ENTRIES_MAX = 5_000;
const BOM = '\uFEFF';

/** Opens a regular file for reading. Throws ToolError for anything else: opening a pipe could block forever. */
export async function openToolFile({
  real,
  shown,
}: Place): Promise<{ readonly file: FileHandle; readonly stats: Stats }> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(async (error: unknown) => {
    throw await withNearFileNames(error, { real, shown });
  });
  try {
    checkHeldFile(file, { real, shown });
  } catch (error) {
    await file.close();
    throw error;
  }
  const stats = await file.stat();
  if (stats.isFile()) return { file, stats };
  await file.close();
  throw new ToolError(stats.isDirectory() ? `${shown} is a folder: use list` : `${shown} is not a regular file`);
}

/** Reads a whole text file. `bom` is its byte order mark or empty; `text` is the rest. */
export async function readToolFileText(place: Place): Promise<{ readonly text: string; readonly bom: string }> {
  const { file, stats } = await openToolFile(place);
  try {
    if (stats.size > TEXT_BYTES_MAX) {
      throw new ToolError(
        `${place.shown} is too large: ${outputByteSize(stats.size)}, at most ${outputByteSize(TEXT_BYTES_MAX)}`,
      );
    }
    const bytes = await file.readFile();
    if (!isPlainOutput(bytes))
      throw new ToolError(`${place.shown} is not UTF-8 text (${outputByteSize(bytes.length)})`);
    const whole = bytes.toString('utf8');
    return whole.startsWith(BOM) ? { text: whole.slice(1), bom: BOM } : { text: whole, bom: '' };
  } finally {
    await file.close();
  }
}

/** Replaces a file atomically: readers see the old or the new text. Preserves the mode; creates folders. */
export async function replaceToolFile({ real, shown }: Place, text: string): Promise<void> {
  try {
    await using folder = await holdFileFolder(dirname(real), { make: true, shown });
    await replaceToolFileIn(folder, { name: basename(real), shown }, text);
  } catch (error) {
    throw unusableToolPath(error, shown);
  }
}

type Named = { readonly name: string; readonly shown: string };

async function replaceToolFileIn(folder: HeldFolder, { name, shown }: Named, text: string): Promise<void> {
  const [target, temporary] = [name, temporaryFileName(name)].map((each) => join(folder.at, each)) as [string, string];
  try {
    const before = await existingToolFile(target);
    if (before !== undefined) {
      if (!before.isFile()) throw new ToolError(`${shown} is ${before.isDirectory() ? 'a folder' : 'not a file'}`);
      // A rename needs write permission on the folder only, so check that the file is not read-only.
      await access(target, constants.W_OK);
    }
    const file = await open(temporary, 'wx', before === undefined ? 0o666 : before.mode & 0o7777);
    try {
      await file.writeFile(text);
      // `open` applies the umask, so set the previous mode again.
      if (before !== undefined) await file.chmod(before.mode & 0o7777);
    } finally {
      await file.close();
    }
    await rename(temporary, target);
  } catch (error) {
    await bestEffort(rm(temporary, { force: true }));
    throw error;
  }
}

/** The path was resolved before, so a link here was created meanwhile. */
async function existingToolFile(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (fileErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Turns an error into text for the model. For a missing file it suggests similar names. */
export async function withNearFileNames(error: unknown, { real, shown }: Place): Promise<unknown> {
  if (fileErrorCode(error) !== 'ENOENT') return unusableToolPath(error, shown);
  const near = await nearFileNames(real, shown);
  const question = near.length === 0 ? '' : `: did you mean ${near.join(' or ')}?`;
  return new ToolError(`${shown} does not exist${question}`, { cause: error });
}

async function nearFileNames(real: string, shown: string): Promise<readonly string[]> {
  const wanted = basename(real);
  const entries = await fileNamesIn(dirname(real));
  return entries
    .slice(0, NEAR_ENTRIES_MAX)
    .map((name) => ({ name, distance: fileNameDistance(name.toLowerCase(), wanted.toLowerCase()) }))
    .filter(({ distance }) => distance <= Math.max(1, Math.floor(wanted.length / 3)))
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, NEAR_NAMES_MAX)
    .map(({ name }) => join(dirname(shown), name));
}

async function fileNamesIn(real: string): Promise<readonly string[]> {
  try {
    await using folder = await holdFileFolder(real);
    return await readdir(folder.at);
  } catch {
    // The folder is missing or not readable: nothing to suggest.
    return [];
  }
}

function fileNameDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
