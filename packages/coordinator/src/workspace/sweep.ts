// Bringing a folder's structure back to what the index says: whatever else lies in it is taken away.
//
// Not left to `git clean`, because git doesn't see everything: a `.git` that somebody put into a folder
// with tracked files is invisible to it, and whoever runs git in there next would run what that one's config says.
// So every name in every folder is compared with the index: ignored files, nested repositories, pipes
// and sockets, empty folders, a link where a folder should be.
//
// What is in the files is not looked at here: git compares their times and inodes when it goes to the next
// base. With only tracked names left, each of the right kind and in real folders, that comparison means
// the file it says.

import { chmodSync, type Dirent, lstatSync, readdirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { IndexEntry } from './index-file.ts';
import { isCode, setAside } from './removal.ts';

const BUSY_MS_MAX = 10; // then others get a turn
const PERMISSIONS = 0o7777;

type Kind = 'file' | 'link' | 'folder';

/** The names in each folder; the top one's is the empty string, and paths are one character a byte. */
export type Tracked = ReadonlyMap<string, ReadonlyMap<string, Kind>>;

export function trackedIn(entries: readonly IndexEntry[]): Tracked {
  const folders = new Map<string, Map<string, Kind>>([['', new Map()]]);
  for (const { path, kind } of entries) {
    if (kind === 'gitlink') continue;
    folderOf(folders, path).set(lastName(path), kind);
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

export type SweepOrder = {
  readonly top: string;
  readonly tracked: Tracked;
  /** What folders that drover makes look like. */
  readonly mode: number;
  /** Where folders that have to go are put. */
  readonly trash: string;
};

/** False where something couldn't be taken away. */
export async function sweep({ top, tracked, mode, trash }: SweepOrder): Promise<boolean> {
  const waiting = [''];
  let since = performance.now();
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const names = tracked.get(folder) ?? new Map<string, Kind>();
    for (const entry of openFolder(placeOf(top, folder), mode)) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      const expected = names.get(entry.name);
      if (expected === undefined || expected !== kindOf(entry)) {
        if (!setAside(placeOf(top, path), trash, entry.isDirectory())) return false;
      } else if (expected === 'folder') waiting.push(path);
    }
    if (performance.now() - since > BUSY_MS_MAX) {
      await nextTurn();
      since = performance.now();
    }
  }
  return true;
}

function openFolder(place: Buffer, mode: number): readonly Dirent[] {
  try {
    if ((lstatSync(place).mode & PERMISSIONS) !== mode) chmodSync(place, mode);
    return readdirSync(place, { withFileTypes: true, encoding: 'latin1' });
  } catch (error) {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  }
}

function kindOf(entry: Dirent): Kind | undefined {
  if (entry.isFile()) return 'file';
  if (entry.isSymbolicLink()) return 'link';
  return entry.isDirectory() ? 'folder' : undefined;
}

function placeOf(top: string, path: string): Buffer {
  return path === '' ? Buffer.from(top) : Buffer.concat([Buffer.from(`${top}/`), Buffer.from(path, 'latin1')]);
}
