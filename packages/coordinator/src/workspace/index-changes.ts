// What differs between two indexes of one tree: what `git diff-index --cached` says of the second and the commit that
// the first is an index of.

import type { ObjectFormat } from '../repository.ts';
import { type IndexEntry, type IndexFile, objectOf } from './index-file.ts';

const MODE_DIGITS = 6;

export const ABSENT = '000000';
export const GITLINK = '160000';

/** Modes are as git writes them. */
export type Change = { readonly path: string; readonly before: string; readonly after: string };

/** In the order of their paths. */
export function changesBetween(before: IndexFile, after: IndexFile, format: ObjectFormat): readonly Change[] {
  const left = new Map(before.entries.map((entry) => [entry.path, entry]));
  const changed = after.entries.flatMap((entry) => {
    const was = left.get(entry.path);
    left.delete(entry.path);
    const isSame =
      was?.mode === entry.mode && objectOf(before.bytes, was, format).equals(objectOf(after.bytes, entry, format));
    return isSame ? [] : [{ path: entry.path, before: modeOf(was), after: modeOf(entry) }];
  });
  const gone = [...left.values()].map((entry) => ({ path: entry.path, before: modeOf(entry), after: ABSENT }));
  return gone.length === 0 ? changed : [...changed, ...gone].toSorted(byPath);
}

function modeOf(entry: IndexEntry | undefined): string {
  return entry === undefined ? ABSENT : entry.mode.toString(8).padStart(MODE_DIGITS, '0');
}

// By their bytes, as git has it: a character is one.
function byPath(a: Change, b: Change): number {
  return a.path < b.path ? -1 : 1;
}
