// Differences between two indexes of one tree: the same as `git diff-index --cached` for the second index and the
// commit of the first one. Also lists the files that look different to git, even with the same content.

import type { ObjectFormat } from './repository.ts';
import { type IndexEntry, type IndexFile, objectOfIndexEntry, statOfIndexEntry } from './index-file.ts';

const MODE_DIGITS = 6;

export const ABSENT = '000000';
export const GITLINK = '160000';

/** Modes in git's notation. */
export type Change = { readonly path: string; readonly before: string; readonly after: string };

/** Sorted by path. */
export function gitIndexChangesBetween(before: IndexFile, after: IndexFile, format: ObjectFormat): readonly Change[] {
  const left = new Map(before.entries.map((entry) => [entry.path, entry]));
  const changed = after.entries.flatMap((entry) => {
    const was = left.get(entry.path);
    left.delete(entry.path);
    const isSame =
      was?.mode === entry.mode &&
      objectOfIndexEntry(before.bytes, was, format).equals(objectOfIndexEntry(after.bytes, entry, format));
    return isSame ? [] : [{ path: entry.path, before: modeOfIndexEntry(was), after: modeOfIndexEntry(entry) }];
  });
  const gone = [...left.values()].map((entry) => ({
    path: entry.path,
    before: modeOfIndexEntry(entry),
    after: ABSENT,
  }));
  return gone.length === 0 ? changed : [...changed, ...gone].toSorted(indexEntriesByPath);
}

/** Paths of the first index whose entry in the second one differs in any byte: times, inode, size or content. */
export function gitIndexPathsTouched(before: IndexFile, after: IndexFile, format: ObjectFormat): ReadonlySet<string> {
  const found = new Map(after.entries.map((entry) => [entry.path, entry]));
  const isSame = (was: IndexEntry): boolean => {
    const is = found.get(was.path);
    return (
      is !== undefined &&
      statOfIndexEntry(before.bytes, was).equals(statOfIndexEntry(after.bytes, is)) &&
      objectOfIndexEntry(before.bytes, was, format).equals(objectOfIndexEntry(after.bytes, is, format))
    );
  };
  return new Set(before.entries.filter((entry) => !isSame(entry)).map(({ path }) => path));
}

function modeOfIndexEntry(entry: IndexEntry | undefined): string {
  return entry === undefined ? ABSENT : entry.mode.toString(8).padStart(MODE_DIGITS, '0');
}

// Compares by bytes, like git: each character is one byte.
function indexEntriesByPath(a: Change, b: Change): number {
  return a.path < b.path ? -1 : 1;
}
