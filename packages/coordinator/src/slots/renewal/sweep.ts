// Removes everything from a tree that differs from the index, and returns the files to write again.
//
// WHY THE REST IS PROVEN CLEAN
//   Every change of a file or folder sets its ctime to that moment, and no process can choose a ctime except by
//   setting the machine's clock. A file with the index's ctime, inode and size is therefore the one drover wrote, if
//   it was written some time before the worker got the tree; otherwise it is read. A folder with a known ctime has
//   only the names that drover knew.
//   Right after a commit git has compared all files by whole seconds: a file that was written in a second before the
//   worker's first one, and looked the same to git, is not checked again.
//
// `git clean` is not enough: it does not see a `.git` in a folder with tracked files, and the next git there would run
// what its config says. The sweep compares every name in every folder with the index: ignored files, nested
// repositories, pipes, sockets, empty folders, links in place of folders.

import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, readdirSync, readFileSync, readlinkSync, type Stats } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ObjectFormat } from '../../git/repository.ts';
import {
  isFileAsIndexEntry,
  indexEntryLatestMs,
  objectOfIndexEntry,
  indexEntryWrittenMs,
  type IndexEntry,
  type IndexFile,
} from '../../git/index-file.ts';
import { setFolderAside } from '../../git/removal.ts';
import { isRenewableWorkerGit, WORKER_GIT } from './worker-git.ts';

/** Files get their times from a clock that is a few milliseconds late. */
export const CLOCK_MS = 100;

const SECOND_MS = 1_000;
const BUSY_MS_MAX = 10; // entries after which the loop yields
const PERMISSIONS = 0o7777;
const READ_BYTES_MAX = 1_000_000; // largest file that is read to see if it changed; a larger one is written again

/** Stat data of folders at a time when every name in them was known, by path. */
export type KnownFolders = Map<string, { readonly inode: number; readonly ctimeMs: number }>;

/** Facts that a commit found about the files. They hold until the tree is used again. */
export type Sight = {
  /** Paths of files whose stat data differs from the index. */
  readonly touched: ReadonlySet<string>;
  /** Until this time only drover has used the files. */
  readonly aloneUntilMs: number;
};

export type SweepOrder = {
  readonly top: string;
  readonly index: IndexFile;
  readonly format: ObjectFormat;
  /** When the index was written, or later while drover alone had the tree. */
  readonly indexMs: number;
  readonly folders: KnownFolders;
  /** The mode of folders that drover makes. */
  readonly mode: number;
  /** The folder for removed files. */
  readonly trash: string;
  readonly sight?: Sight;
  /** Paths that stay, one character per byte: prepared, and proven unchanged. */
  readonly kept?: ReadonlySet<string>;
};

/** The files that are missing now; undefined if something could not be removed. */
export async function sweepSlot(order: SweepOrder): Promise<readonly IndexEntry[] | undefined> {
  const takeAway = (strays: readonly Buffer[]): boolean => strays.every((place) => setFolderAside(place, order.trash));
  // Folders first: then every path that is read leads through real folders.
  const { kept } = order;
  const strays = await strayNamesInSlot(order);
  const removed = kept === undefined ? strays : strays.filter((place) => !kept.has(sweptPathIn(order.top, place)));
  if (!takeAway(removed) || !takeAway(isUnfitGitInSlot(order))) return undefined;
  const { changed, missing } = await filesChangedSinceSweep(order);
  if (!takeAway(changed.map(({ path }) => sweptPlaceOf(order.top, path)))) return undefined;
  return [...missing, ...changed];
}

/** Call it before a worker gets the tree: a change at the moment a folder was made would not show. */
export function forgetYoungInSweep(folders: KnownFolders): void {
  const now = Date.now();
  for (const [path, { ctimeMs }] of folders) if (indexEntryLatestMs(ctimeMs) + CLOCK_MS >= now) folders.delete(path);
}

/** Records the folders of a clean tree, so that the next sweep need not read them. */
export async function learnFoldersInSweep(order: SweepOrder): Promise<void> {
  await strayNamesInSlot(order);
}

/** The topmost paths in the tree that the index does not have, one character per byte. */
export async function strayPathsInSlot(order: SweepOrder): Promise<readonly string[]> {
  const strays = await strayNamesInSlot({ ...order, folders: new Map() });
  return strays.map((place) => sweptPathIn(order.top, place)).toSorted();
}

function sweptPathIn(top: string, place: Buffer): string {
  return place.toString('latin1', Buffer.byteLength(top) + 1);
}

// The worker's git folder has files that the index does not list.
function isUnfitGitInSlot({ top, mode }: SweepOrder): readonly Buffer[] {
  return isRenewableWorkerGit(`${top}/${WORKER_GIT}`, mode) ? [] : [sweptPlaceOf(top, WORKER_GIT)];
}

async function strayNamesInSlot({ top, index, mode, folders: known }: SweepOrder): Promise<readonly Buffer[]> {
  const folders = foldersToSweep(index.entries);
  const strays: Buffer[] = [];
  const waiting = [''];
  const isLate = sweepYieldClock();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (isLate()) await nextTurn();
    const place = sweptPlaceOf(top, path);
    const folder = folders.get(path);
    const found = lstatSync(place, { throwIfNoEntry: false });
    if (folder === undefined || found?.isDirectory() !== true) {
      strays.push(place);
      continue;
    }
    if (isFolderKnownToSweep(known.get(path), found)) {
      waiting.push(...folder.folders);
      continue;
    }
    const isClosed = (found.mode & PERMISSIONS) !== mode;
    if (isClosed) chmodSync(place, mode);
    const within = path === '' ? '' : `${path}/`;
    const files = new Set(folder.files);
    const inner = new Set(folder.folders);
    const others = readdirSync(place, { encoding: 'latin1' })
      .map((name) => `${within}${name}`)
      // A later check finds out whether these are still files.
      .filter((name) => !files.has(name));
    waiting.push(...others.filter((name) => inner.has(name)));
    const unknown = others.filter((name) => !inner.has(name) && name !== WORKER_GIT);
    strays.push(...unknown.map((name) => sweptPlaceOf(top, name)));
    if (!isClosed && unknown.length === 0) known.set(path, { inode: found.ino, ctimeMs: found.ctimeMs });
    else known.delete(path);
  }
  return strays;
}

function isFolderKnownToSweep(
  known: { readonly inode: number; readonly ctimeMs: number } | undefined,
  found: Stats,
): boolean {
  return known !== undefined && known.inode === found.ino && known.ctimeMs === found.ctimeMs;
}

/** The expected content of a folder, by full paths with one character per byte. */
type Folder = { readonly files: string[]; readonly folders: string[] };

// The path of the top folder is the empty string.
function foldersToSweep(entries: readonly IndexEntry[]): ReadonlyMap<string, Folder> {
  const folders = new Map<string, Folder>([['', { files: [], folders: [] }]]);
  let last = '';
  let files = folderToSweepAt(folders, '').files;
  for (const { path, kind } of entries) {
    if (kind === 'gitlink') continue;
    const end = path.lastIndexOf('/');
    // Most paths are in the same folder as the one before.
    if (end !== last.length || !path.startsWith(last)) {
      last = end < 0 ? '' : path.slice(0, end);
      files = folderToSweepAt(folders, last).files;
    }
    files.push(path);
  }
  return folders;
}

function folderToSweepAt(folders: Map<string, Folder>, path: string): Folder {
  const known = folders.get(path);
  if (known !== undefined) return known;
  const made: Folder = { files: [], folders: [] };
  folders.set(path, made);
  folderToSweepAt(folders, path.slice(0, Math.max(0, path.lastIndexOf('/')))).folders.push(path);
  return made;
}

type Files = { readonly changed: readonly IndexEntry[]; readonly missing: readonly IndexEntry[] };

async function filesChangedSinceSweep(order: SweepOrder): Promise<Files> {
  const { top, index, indexMs } = order;
  const changed: IndexEntry[] = [];
  const missing: IndexEntry[] = [];
  const isLate = sweepYieldClock();
  for (const entry of suspectsOfSweep(order)) {
    if (isLate()) await nextTurn();
    const place = sweptPathOf(top, entry.path);
    const found = lstatSync(place, { throwIfNoEntry: false });
    if (found === undefined) missing.push(entry);
    else if (!isFileAsIndexEntry(index.bytes, entry, found)) changed.push(entry);
    else if (
      indexEntryWrittenMs(index.bytes, entry) + CLOCK_MS > indexMs &&
      !isSameSinceSweep(order, entry, { place, found })
    )
      changed.push(entry);
  }
  return { changed, missing };
}

function suspectsOfSweep({ index, sight }: SweepOrder): readonly IndexEntry[] {
  if (sight === undefined) return index.entries;
  const second = Math.floor((sight.aloneUntilMs - CLOCK_MS) / SECOND_MS) * SECOND_MS;
  return index.entries.filter(
    (entry) => sight.touched.has(entry.path) || indexEntryWrittenMs(index.bytes, entry) >= second,
  );
}

// A file that a checkout converts, such as its line ends, counts as changed.
function isSameSinceSweep(
  { index: { bytes }, format }: SweepOrder,
  entry: IndexEntry,
  { place, found }: { readonly place: string | Buffer; readonly found: Stats },
): boolean {
  const isLink = entry.kind === 'link';
  if (found.size > READ_BYTES_MAX || !(isLink ? found.isSymbolicLink() : found.isFile())) return false;
  const content = isLink ? readlinkSync(place, { encoding: 'buffer' }) : readFileSync(place);
  const digest = createHash(format).update(`blob ${content.length}\0`).update(content).digest();
  return digest.equals(objectOfIndexEntry(bytes, entry, format));
}

/** Returns true when it is time to yield. */
function sweepYieldClock(): () => boolean {
  let since = performance.now();
  return () => {
    const isLate = performance.now() - since > BUSY_MS_MAX;
    if (isLate) since = performance.now();
    return isLate;
  };
}

function sweptPlaceOf(top: string, path: string): Buffer {
  return path === '' ? Buffer.from(top) : Buffer.concat([Buffer.from(`${top}/`), Buffer.from(path, 'latin1')]);
}

/** A path in the tree; a string if that has the same bytes, because strings are faster. */
export function sweptPathOf(top: string, path: string): string | Buffer {
  return NOT_ASCII.test(path) ? sweptPlaceOf(top, path) : `${top}/${path}`;
}

// oxlint-disable-next-line no-control-regex
const NOT_ASCII = /[^\u0000-\u007f]/;
