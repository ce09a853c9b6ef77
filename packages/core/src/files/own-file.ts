// Reads the files that drover opens by itself: instructions, configs, specs, plans, scripts, prompts.
//
// Guarantees
//   1. Reading never waits for a writer: files are opened with O_NONBLOCK, and only regular files are read.
//   2. At most `bytesMax` bytes are accepted, even if the file grows during the read.
//   3. With `within`, the opened file is inside that folder after all links are resolved.
//   4. All checks use the open descriptor, so replacing the path during the read has no effect.
//
// A file that fails a check is returned as data (`Unread`). The caller decides: error or warning.

import { constants, existsSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, sep } from 'node:path';
import { UsageError } from '../errors.ts';

export const MB = 1024 * 1024;
const OWN_FILE_BYTES_MAX = MB;
const PIECE_BYTES = 64 * 1024;

export type OwnFile = {
  readonly path: string;
  /** The repository that the file belongs to. Omit for a file that the user names: its links may lead anywhere. */
  readonly within?: string | undefined;
  /** Maximum size (default: 1 MB). */
  readonly bytesMax?: number;
};

/** `problem` continues a sentence that starts with the file's name; `fix` is a separate clause. */
type Problem<Kind> = { readonly kind: Kind; readonly problem: string; readonly fix: string };

export type Unread = Problem<'missing'> | Problem<'refused'>;

export type ReadFile = { readonly kind: 'read'; readonly bytes: Buffer };

export async function readOwnFile(file: OwnFile): Promise<ReadFile | Unread> {
  const { O_RDONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    const handle = await open(file.path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    try {
      return await readOpenedOwnFile(handle, file);
    } finally {
      await handle.close();
    }
  } catch (error) {
    return whyOwnFileIsUnread(error, file.path);
  }
}

/** Returns the file's bytes; throws UsageError with the caller's sentence if it cannot be read. */
export async function requireOwnFile(file: OwnFile, sentence: (unread: Unread) => string): Promise<Buffer> {
  const found = await readOwnFile(file);
  if (found.kind === 'read') return found.bytes;
  throw new UsageError(sentence(found));
}

async function readOpenedOwnFile(handle: FileHandle, file: OwnFile): Promise<ReadFile | Unread> {
  const { path, within, bytesMax = OWN_FILE_BYTES_MAX } = file;
  const stats = await handle.stat();
  if (!stats.isFile())
    return refuseOwnFile(`is ${kindOfOwnFile(stats)}, not a regular file`, 'replace it with a regular file');
  if (within !== undefined && !(await isOwnFileWithin(handle, path, within))) {
    return refuseOwnFile('is a link that leads out of the repository', 'replace the link with a copy of the file');
  }
  const bytes = stats.size > bytesMax ? undefined : await bytesOfOwnFile(handle, bytesMax);
  if (bytes === undefined) return refuseOwnFile(`is larger than ${Math.floor(bytesMax / MB)} MB`, 'shorten it');
  return { kind: 'read', bytes };
}

/** Returns undefined for more than `bytesMax` bytes. Reads to the end, because files in /proc report no size. */
async function bytesOfOwnFile(handle: FileHandle, bytesMax: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  for (let total = 0; total <= bytesMax;) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(PIECE_BYTES), 0, PIECE_BYTES, null);
    if (bytesRead === 0) return Buffer.concat(pieces);
    pieces.push(buffer.subarray(0, bytesRead));
    total += bytesRead;
  }
  return undefined;
}

async function isOwnFileWithin(handle: FileHandle, path: string, folder: string): Promise<boolean> {
  const real = await realPathOfOwnFile(handle, path);
  if (real === undefined) return false;
  const below = relative(await realpath(folder), real);
  return below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below);
}

/** Returns the real path of an open file: from /proc, else by resolving `path` and comparing the inode. */
async function realPathOfOwnFile(handle: FileHandle, path: string): Promise<string | undefined> {
  const descriptor = `/proc/self/fd/${handle.fd}`;
  if (existsSync(descriptor)) return readlink(descriptor);
  const real = await realpath(path);
  const [opened, found] = await Promise.all([handle.stat(), stat(real)]);
  return opened.dev === found.dev && opened.ino === found.ino ? real : undefined;
}

function kindOfOwnFile(stats: Stats): string {
  if (stats.isDirectory()) return 'a folder';
  if (stats.isFIFO()) return 'a pipe';
  return stats.isSocket() ? 'a socket' : 'a device';
}

function refuseOwnFile(problem: string, fix: string): Unread {
  return { kind: 'refused', problem, fix };
}

async function whyOwnFileIsUnread(error: unknown, path: string): Promise<Unread> {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  switch (code) {
    case undefined:
      throw error;
    case 'ENOENT':
    case 'ENOTDIR':
      if (await isOwnFileLink(path))
        return refuseOwnFile('is a link to a file that does not exist', 'repair or remove the link');
      return { kind: 'missing', problem: `cannot be read (${code})`, fix: 'check the path' };
    case 'ELOOP':
      return refuseOwnFile('is a loop of links', 'repair or remove the link');
    case 'ENXIO':
      return refuseOwnFile('is a socket or a device, not a regular file', 'replace it with a regular file');
    default:
      return refuseOwnFile(`cannot be read (${code})`, 'check the file and its permissions');
  }
}

async function isOwnFileLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}
