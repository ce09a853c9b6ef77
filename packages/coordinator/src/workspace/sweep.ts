// Bringing a folder's structure back to what the index says: whatever else lies in it is taken away.
//
// Not left to `git clean`, because git doesn't see everything: a `.git` that somebody put into a folder
// with tracked files is invisible to it, and whoever runs git in there next would run what that one's config says.
// So every name in every folder is compared with the index: ignored files, nested repositories, pipes
// and sockets, empty folders, a link where a folder should be.
//
// The files themselves are mostly left to git, which compares their kinds, times and inodes when it goes to the
// next base. With only tracked names left, and those in real folders, that comparison means the file it says.

import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isAsWritten, isUnsettled, type IndexEntry, type IndexFile } from './index-file.ts';
import { setAside } from './removal.ts';

const BUSY_MS_MAX = 10; // then others get a turn
const PERMISSIONS = 0o7777;

export type SweepOrder = {
  readonly top: string;
  readonly index: IndexFile;
  readonly indexSecond: number; // in which the index was written
  /** What folders that drover makes look like. */
  readonly mode: number;
  /** Where folders that have to go are put. */
  readonly trash: string;
};

/** False where something couldn't be taken away. */
export async function sweep(order: SweepOrder): Promise<boolean> {
  const takeAway = async (strays: readonly Buffer[]): Promise<boolean> => {
    const gone = await Promise.all(strays.map((place) => setAside(place, order.trash)));
    return gone.every(Boolean);
  };
  // Folders first: then whatever is looked at by its path is really there.
  return (await takeAway(await strayNames(order))) && takeAway(await changedFiles(order));
}

async function strayNames({ top, index, mode }: SweepOrder): Promise<readonly Buffer[]> {
  const tracked = trackedIn(index.entries);
  const strays: Buffer[] = [];
  const waiting = [''];
  const isLate = clock();
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    if (isLate()) await nextTurn();
    const place = placeOf(top, folder);
    const names = tracked.get(folder);
    if (names === undefined || !isFolder(place, mode)) {
      strays.push(place);
      continue;
    }
    for (const name of readdirSync(place, { encoding: 'latin1' })) {
      const expected = names.get(name);
      // Whether a file is a file, git sees when it looks at its times.
      if (expected === 'file') continue;
      const path = folder === '' ? name : `${folder}/${name}`;
      if (expected === 'folder') waiting.push(path);
      else strays.push(placeOf(top, path));
    }
  }
  return strays;
}

type Kind = 'file' | 'folder';

/** The names in each folder; the top one's is the empty string, and paths are one character a byte. */
type Tracked = ReadonlyMap<string, ReadonlyMap<string, Kind>>;

function trackedIn(entries: readonly IndexEntry[]): Tracked {
  const folders = new Map<string, Map<string, Kind>>([['', new Map()]]);
  for (const { path, kind } of entries) {
    if (kind === 'gitlink') continue;
    folderOf(folders, path).set(lastName(path), 'file');
  }
  return folders;
}

// The folder a path is in, after it and all above it are known.
function folderOf(folders: Map<string, Map<string, Kind>>, path: string): Map<string, Kind> {
  const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')));
  const known = folders.get(folder);
  if (known !== undefined) return known;
  const names = new Map<string, Kind>();
  folders.set(folder, names);
  folderOf(folders, folder).set(lastName(folder), 'folder');
  return names;
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

// Those of which git could only compare the content: another mode, or another name elsewhere, it wouldn't see.
async function changedFiles({ top, index, indexSecond }: SweepOrder): Promise<readonly Buffer[]> {
  const changed: Buffer[] = [];
  const isLate = clock();
  for (const entry of index.entries) {
    if (!isUnsettled(index.bytes, entry, indexSecond)) continue;
    if (isLate()) await nextTurn();
    const place = placeOf(top, entry.path);
    const found = lstatSync(place, { bigint: true, throwIfNoEntry: false });
    if (found !== undefined && !isAsWritten(index.bytes, entry, found)) changed.push(place);
  }
  return changed;
}

/** Says now and then that it is somebody else's turn. */
function clock(): () => boolean {
  let since = performance.now();
  return () => {
    const isLate = performance.now() - since > BUSY_MS_MAX;
    if (isLate) since = performance.now();
    return isLate;
  };
}

function isFolder(place: Buffer, mode: number): boolean {
  const found = lstatSync(place, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true) return false;
  if ((found.mode & PERMISSIONS) !== mode) chmodSync(place, mode);
  return true;
}

function placeOf(top: string, path: string): Buffer {
  return path === '' ? Buffer.from(top) : Buffer.concat([Buffer.from(`${top}/`), Buffer.from(path, 'latin1')]);
}
