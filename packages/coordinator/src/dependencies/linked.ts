// Installed dependencies as hard links: one private copy, and workspaces that are filled from it.
//
// Guarantees
//   1. The copy is made once for each state of the lockfile. Its files are read-only.
//   2. `audit` finds files of the copy that were changed, added or removed since it was made.
//
// Crash: a copy and its record get their name together once they are complete, so an interrupted copy is made again.
//
// All calls are synchronous, a few milliseconds at a time: a link takes some microseconds, a promise for it three times
// as long.

import { createHash, randomUUID } from 'node:crypto';
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
} from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isErrorCode } from '../git/removal.ts';
import { CACHES, isDependencyFolder, isOwnDependencyFolder } from './bring.ts';
import { dependencyStateKey } from './state-key.ts';

const WRITE_BITS = 0o222;
const BUSY_MS_MAX = 10; // after which the loop yields
/** File systems take the time of a change from a clock that is a few milliseconds late. */
const CLOCK_MS = 100;
const FILES = 'files';
const RECORD = 'record.json';

/** A folder of the copy by its path, with the names in it. */
type CopiedFolder = {
  readonly path: string;
  readonly folders: readonly string[];
  readonly files: readonly string[];
  readonly links: readonly string[];
};

/** Folders of a workspace that were filled with links, by path with one character per byte. */
export type LinkedFolders = ReadonlyMap<string, LinkedFolder>;
export type LinkedFolder = {
  readonly ino: number;
  readonly mode: number;
  readonly ctimeMs: number;
  /** The names of the folders in it, one character per byte. */
  readonly folders: readonly string[];
  /** A later change of its names shows in its ctime. */
  readonly isSettled: boolean;
};

export class LinkedDependencies {
  readonly folders: readonly string[];
  readonly #top: string;
  readonly #store: string;
  #copy: Promise<string> | undefined;
  #listing: Promise<readonly CopiedFolder[]> | undefined;
  readonly #linked = new Map<string, LinkedFolders>();

  constructor(folders: readonly string[], { top, store }: { readonly top: string; readonly store: string }) {
    this.folders = folders;
    this.#top = top;
    this.#store = store;
  }

  /** The folder of the copy, which is made at the first call. */
  #ready(): Promise<string> {
    this.#copy ??= copyDependencies(this.folders, this.#top, this.#store);
    return this.#copy;
  }

  /** Tells copies of the same state apart: one that was changed is made again, with other inodes. */
  async identity(): Promise<string> {
    const record = await readFile(join(await this.#ready(), RECORD));
    return createHash('sha256').update(record).digest('hex');
  }

  /** Fills a workspace. Skips a folder that is there, or whose package the commit lacks. A failure leaves a part. */
  async link(tree: string, signal: AbortSignal): Promise<void> {
    const copy = join(await this.#ready(), FILES);
    const missing = this.folders.filter((path) => {
      const to = join(tree, path);
      return isDependencyFolder(join(copy, path)) && isOwnDependencyFolder(dirname(to)) && !existsSync(to);
    });
    if (missing.length === 0) return;
    this.#listing ??= listDependencyFolders(copy, this.folders);
    const all = await this.#listing;
    const filled = all.filter(({ path }) => missing.some((root) => path === root || path.startsWith(`${root}/`)));
    await inDependencyTurns(filled, (folder) => {
      signal.throwIfAborted();
      linkDependencyFolder(folder, copy, tree);
    });
    this.#linked.set(tree, linkedFoldersOf(filled, this.folders, tree));
  }

  /** The folders that `link` filled in this workspace. */
  linkedIn(tree: string): LinkedFolders | undefined {
    return this.#linked.get(tree);
  }

  /** Paths of the copy that are not as drover made them. */
  async audit(): Promise<readonly string[]> {
    const copy = await this.#copy;
    if (copy === undefined) return [];
    const record = JSON.parse(await readFile(join(copy, RECORD), 'utf8')) as Readonly<Record<string, string>>;
    const before = new Map(Object.entries(record));
    const now = new Map(Object.entries(await dependencyFilesState(join(copy, FILES), this.folders)));
    return [...new Set([...before.keys(), ...now.keys()])].filter((path) => before.get(path) !== now.get(path));
  }

  /** Removes a copy that was changed, so that the next run makes another. Workspaces keep their links. */
  async removeCopy(): Promise<void> {
    const copy = await this.#copy;
    if (copy !== undefined) await rm(copy, { recursive: true, force: true });
  }
}

async function copyDependencies(folders: readonly string[], top: string, store: string): Promise<string> {
  const place = join(store, 'dependency-copies', dependencyStateKey(folders, top));
  if (existsSync(join(place, RECORD))) return place;
  // Runs of one process may make it at the same time.
  const draft = `${place}.${randomUUID()}`;
  const files = join(draft, FILES);
  for (const path of folders) await mkdir(dirname(join(files, path)), { recursive: true });
  await inDependencyTurns(await listDependencyFolders(top, folders), (folder) =>
    copyDependencyFolder(folder, top, files),
  );
  await writeFile(join(draft, RECORD), JSON.stringify(await dependencyFilesState(files, folders)));
  await rename(draft, place).catch(async (error: unknown) => {
    // Another run was faster.
    if (!isErrorCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    await rm(draft, { recursive: true, force: true });
  });
  return place;
}

function copyDependencyFolder({ path, files, links }: CopiedFolder, top: string, copy: string): void {
  const [source, target] = [join(top, path), join(copy, path)];
  mkdirSync(target, { recursive: true });
  for (const name of files) {
    const [from, to] = [`${source}/${name}`, `${target}/${name}`];
    copyFileSync(from, to, constants.COPYFILE_FICLONE);
    chmodSync(to, lstatSync(to).mode & ~WRITE_BITS);
  }
  for (const name of links) symlinkSync(readlinkSync(`${source}/${name}`), `${target}/${name}`);
}

function linkDependencyFolder({ path, files, links }: CopiedFolder, copy: string, tree: string): void {
  const [source, target] = [join(copy, path), join(tree, path)];
  mkdirSync(target);
  for (const name of files) linkSync(`${source}/${name}`, `${target}/${name}`);
  for (const name of links) symlinkSync(readlinkSync(`${source}/${name}`), `${target}/${name}`);
}

/** Build tools add caches to the topmost folders, so those are not among them. */
function linkedFoldersOf(filled: readonly CopiedFolder[], roots: readonly string[], tree: string): LinkedFolders {
  const linked = new Map<string, LinkedFolder>();
  const now = Date.now();
  for (const { path, folders } of filled) {
    if (roots.includes(path)) continue;
    const { ino, mode, ctimeMs } = lstatSync(join(tree, path));
    const isSettled = ctimeMs + CLOCK_MS < now;
    linked.set(inBytes(path), { ino, mode, ctimeMs, folders: folders.map(inBytes), isSettled });
  }
  return linked;
}

function inBytes(path: string): string {
  return Buffer.from(path).toString('latin1');
}

/** The dependency folders below a folder, parents first, without the caches of build tools. */
async function listDependencyFolders(top: string, roots: readonly string[]): Promise<readonly CopiedFolder[]> {
  const found: CopiedFolder[] = [];
  const waiting = roots.filter((path) => isDependencyFolder(join(top, path))).toReversed();
  const pause = dependencyPause();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    await pause();
    const isCache = (name: string) => basename(path ?? '') === 'node_modules' && CACHES.includes(name);
    const entries = readdirSync(join(top, path), { withFileTypes: true }).filter(({ name }) => !isCache(name));
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    const links = entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => name);
    found.push({ path, folders, files, links });
    for (const name of folders) waiting.push(`${path}/${name}`);
  }
  return found;
}

/** By path: inode, mode, size and mtime of each file. Links change the ctime, so it can't be compared. */
async function dependencyFilesState(copy: string, roots: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const state: Record<string, string> = {};
  await inDependencyTurns(await listDependencyFolders(copy, roots), ({ path, files, links }) => {
    for (const name of [...files, ...links]) {
      const { ino, mode, size, mtimeMs } = lstatSync(join(copy, path, name));
      state[`${path}/${name}`] = `${ino} ${mode} ${size} ${mtimeMs}`;
    }
  });
  return state;
}

async function inDependencyTurns(
  folders: readonly CopiedFolder[],
  work: (folder: CopiedFolder) => void,
): Promise<void> {
  const pause = dependencyPause();
  for (const folder of folders) {
    await pause();
    work(folder);
  }
}

/** Yields if the loop was busy for long. */
function dependencyPause(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < BUSY_MS_MAX) return undefined;
    return nextTurn().then(() => {
      since = performance.now();
    });
  };
}
