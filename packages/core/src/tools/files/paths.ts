// Paths from a model, resolved inside the workspace.
//
// A path is followed through every symlink, also one that doesn't exist yet (then through its
// deepest folder that does), and what it comes to must lie in the workspace. The real path is what
// is opened, without following a link at its end, so that a link put there meanwhile is not followed.
// Reading may also reach the folder of long outputs. Nothing is written into a .git folder: what
// stands there (hooks, filters) is run by the next git command.

import { lstat, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, normalize, relative, resolve, sep } from 'node:path';
import { ToolError } from '../../errors.ts';

const LINKS_MAX = 40;
// Bounds for a path that is written, relative to the workspace. File systems take names of at most 255 bytes.
const FOLDERS_MAX = 64;
const NAME_BYTES_MAX = 255;
const PATH_BYTES_MAX = 1_024;

/** `real` is what to open; `shown` is what to call it: relative to the workspace where it lies in it. */
export type Place = { readonly real: string; readonly shown: string };

export type Bounds = { readonly cwd: string; readonly outputFolder: string };

export async function readablePlace(path: string, { cwd, outputFolder }: Bounds): Promise<Place> {
  const place = await placeIn(cwd, path);
  if (place !== undefined) return place;
  const kept = isAbsolute(path) ? await placeIn(outputFolder, path) : undefined;
  if (kept !== undefined) return { real: kept.real, shown: kept.real };
  throw outside(path);
}

/** Throws ToolError before any folder is made for a path that is too deep or too long. */
export async function writablePlace(path: string, { cwd }: Pick<Bounds, 'cwd'>): Promise<Place> {
  const place = await inside(cwd, path);
  refuseExcess(place.shown);
  if (place.shown.split(sep).some((part) => part.toLowerCase() === '.git')) {
    throw new ToolError(`${path} is in a .git folder, which is not written by hand: use git`);
  }
  return place;
}

function refuseExcess(path: string): void {
  const names = path.split(sep);
  refuseOver(FOLDERS_MAX, names.length - 1, 'folders');
  refuseOver(NAME_BYTES_MAX, Math.max(...names.map((name) => Buffer.byteLength(name))), 'bytes in one name');
  refuseOver(PATH_BYTES_MAX, Buffer.byteLength(path), 'bytes');
}

function refuseOver(max: number, count: number, unit: string): void {
  if (count > max)
    throw new ToolError(`the path has ${count} ${unit}, at most ${max} are allowed: choose a shorter path`);
}

/** Where the path leads, if that is in the folder; throws ToolError otherwise. */
export async function inside(cwd: string, path: string): Promise<Place> {
  const place = await placeIn(cwd, path);
  if (place === undefined) throw outside(path);
  return place;
}

/** One spelling for a path, by its letters alone: what rules match and calls are kept apart by. */
export function tidyPath(path: string): string {
  const tidy = normalize(path);
  return tidy.length > 1 && tidy.endsWith(sep) ? tidy.slice(0, -1) : tidy;
}

/** Runs work on one file after another, so that no change is made to a text that another just replaced. */
export async function exclusively<T>(real: string, work: () => Promise<T>): Promise<T> {
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

function outside(path: string): ToolError {
  return new ToolError(`${path} is outside the workspace`);
}

async function placeIn(folder: string, path: string): Promise<Place | undefined> {
  if (path.trim() === '') throw new ToolError('the path is empty');
  if (path === '~' || path.startsWith('~/')) return undefined;
  const root = await realEnd(folder, path, LINKS_MAX);
  const real = await realEnd(resolve(folder, path), path, LINKS_MAX);
  const below = relative(root, real);
  const isInside = below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below);
  return isInside ? { real, shown: below === '' ? '.' : below } : undefined;
}

// Like realpath, but for paths whose end does not exist.
async function realEnd(absolute: string, asked: string, linksLeft: number): Promise<string> {
  try {
    return await realpath(absolute);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw unusable(error, asked);
  }
  const target = await linkTarget(absolute);
  if (target !== undefined) {
    if (linksLeft === 0) throw new ToolError(`${asked} is a loop of symlinks`);
    return realEnd(resolve(dirname(absolute), target), asked, linksLeft - 1);
  }
  const parent = dirname(absolute);
  return parent === absolute ? absolute : join(await realEnd(parent, asked, linksLeft), basename(absolute));
}

// A link to something that doesn't exist: realpath only says that there is nothing.
async function linkTarget(absolute: string): Promise<string | undefined> {
  try {
    return (await lstat(absolute)).isSymbolicLink() ? await readlink(absolute) : undefined;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

export function codeOf(error: unknown): string | undefined {
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

/** A system error as text for the model; what is no system error goes on as it is. */
export function unusable(error: unknown, path: string): unknown {
  const problem = PROBLEMS[codeOf(error) ?? ''];
  return problem === undefined ? error : new ToolError(`${path} ${problem}`, { cause: error });
}
