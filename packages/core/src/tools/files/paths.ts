// Resolves paths from a model inside the workspace.
//
// Guarantees
//   1. All symlinks of a path are resolved, and the real path must be inside the workspace. A path that does not
//      exist is resolved from its deepest existing folder.
//   2. Tools open the real path without following a final link, so a link created in between has no effect.
//   3. Reads may also reach the folder of long outputs.
//   4. No path in a .git folder is writable: the next git command could run its hooks and filters.

import { lstat, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, normalize, relative, resolve, sep } from 'node:path';
import { ToolError } from '../../errors.ts';

const LINKS_MAX = 40;
// Limits of a path to write, relative to the workspace. File systems accept names of at most 255 bytes.
const FOLDERS_MAX = 64;
const NAME_BYTES_MAX = 255;
const PATH_BYTES_MAX = 1_024;

/** `real` is the path to open; `shown` is the path to print, relative to the workspace if inside it. */
export type Place = { readonly real: string; readonly shown: string };

export type Bounds = { readonly cwd: string; readonly outputFolder: string };

export async function readableToolPath(path: string, { cwd, outputFolder }: Bounds): Promise<Place> {
  const place = await toolPlaceIn(cwd, path);
  if (place !== undefined) return place;
  const kept = isAbsolute(path) ? await toolPlaceIn(outputFolder, path) : undefined;
  if (kept !== undefined) return { real: kept.real, shown: kept.real };
  throw toolPathOutside(path);
}

/** Resolves a path to write. Throws ToolError if it is outside, in a .git folder, too deep or too long. */
export async function writableToolPath(path: string, { cwd }: Pick<Bounds, 'cwd'>): Promise<Place> {
  const place = await toolPathInside(cwd, path);
  refuseExcessFile(place.shown);
  if (place.shown.split(sep).some((part) => part.toLowerCase() === '.git')) {
    throw new ToolError(`${path} is in a .git folder, which is not written by hand: use git`);
  }
  return place;
}

function refuseExcessFile(path: string): void {
  const names = path.split(sep);
  refuseFileOver(FOLDERS_MAX, names.length - 1, 'folders');
  refuseFileOver(NAME_BYTES_MAX, Math.max(...names.map((name) => Buffer.byteLength(name))), 'bytes in one name');
  refuseFileOver(PATH_BYTES_MAX, Buffer.byteLength(path), 'bytes');
}

function refuseFileOver(max: number, count: number, unit: string): void {
  if (count > max)
    throw new ToolError(`the path has ${count} ${unit}, at most ${max} are allowed: choose a shorter path`);
}

/** Resolves a path inside a folder; throws ToolError if it leads outside. */
export async function toolPathInside(cwd: string, path: string): Promise<Place> {
  const place = await toolPlaceIn(cwd, path);
  if (place === undefined) throw toolPathOutside(path);
  return place;
}

/** Normalizes a path without reading the disk, for permission rules and for conflicts between calls. */
export function tidyToolPath(path: string): string {
  const tidy = normalize(path);
  return tidy.length > 1 && tidy.endsWith(sep) ? tidy.slice(0, -1) : tidy;
}

/** Serializes work on the same file, so that no change overwrites another one. */
export async function oneFileChangeAtATime<T>(real: string, work: () => Promise<T>): Promise<T> {
  const before = queues.get(real);
  const turn = before === undefined ? work() : before.then(work);
  const settled = turn.then(
    () => undefined,
    () => undefined,
  );
  queues.set(real, settled);
  try {
    return await turn;
  } finally {
    if (queues.get(real) === settled) queues.delete(real);
  }
}

const queues = new Map<string, Promise<void>>();

function toolPathOutside(path: string): ToolError {
  return new ToolError(`${path} is outside the workspace`);
}

async function toolPlaceIn(folder: string, path: string): Promise<Place | undefined> {
  if (path.trim() === '') throw new ToolError('the path is empty');
  if (path === '~' || path.startsWith('~/')) return undefined;
  const root = await realEndOfToolPath(folder, path, LINKS_MAX);
  const real = await realEndOfToolPath(resolve(folder, path), path, LINKS_MAX);
  const below = relative(root, real);
  const isInside = below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below);
  return isInside ? { real, shown: below === '' ? '.' : below } : undefined;
}

// Like realpath, but also for paths that do not exist yet.
async function realEndOfToolPath(absolute: string, asked: string, linksLeft: number): Promise<string> {
  try {
    return await realpath(absolute);
  } catch (error) {
    if (fileErrorCode(error) !== 'ENOENT') throw unusableToolPath(error, asked);
  }
  const target = await linkTargetOfToolPath(absolute);
  if (target !== undefined) {
    if (linksLeft === 0) throw new ToolError(`${asked} is a loop of symlinks`);
    return realEndOfToolPath(resolve(dirname(absolute), target), asked, linksLeft - 1);
  }
  const parent = dirname(absolute);
  return parent === absolute ? absolute : join(await realEndOfToolPath(parent, asked, linksLeft), basename(absolute));
}

// Returns the target of a dangling link, for which realpath only reports ENOENT.
async function linkTargetOfToolPath(absolute: string): Promise<string | undefined> {
  try {
    return (await lstat(absolute)).isSymbolicLink() ? await readlink(absolute) : undefined;
  } catch (error) {
    if (fileErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

export function fileErrorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EISDIR: 'is a folder',
  ENOTDIR: 'has a file where a folder is needed',
  ELOOP: 'is a loop of symlinks',
  EACCES: 'may not be accessed',
  EPERM: 'may not be accessed',
  EROFS: 'is on a read-only file system',
  ENAMETOOLONG: 'is too long a name',
  ENOSPC: 'could not be written: the disk is full',
  EDQUOT: 'could not be written: the disk quota is used up',
};

/** Turns a known system error into text for the model; returns other errors unchanged. */
export function unusableToolPath(error: unknown, path: string): unknown {
  const problem = PROBLEMS[fileErrorCode(error) ?? ''];
  return problem === undefined ? error : new ToolError(`${path} ${problem}`, { cause: error });
}
