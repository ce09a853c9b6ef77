// Seals paths for the time of a command: what is not there cannot be made either.
//
// A mount needs something to cover, so an empty folder stands for what is missing: git does not show one. It is removed
// when the last command that needs it has ended, unless something was put into it from outside meanwhile.

import { lstatSync, mkdirSync, rmdirSync } from 'node:fs';

const uses = new Map<string, number>(); // path -> commands that need the folder made here

export function seal(paths: readonly string[]): Disposable {
  const made = paths.filter(cover);
  return {
    [Symbol.dispose]() {
      for (const path of made) uncover(path);
    },
  };
}

function cover(path: string): boolean {
  const count = uses.get(path);
  if (count === undefined) {
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return false;
    mkdirSync(path);
  }
  uses.set(path, (count ?? 0) + 1);
  return true;
}

function uncover(path: string): void {
  const count = uses.get(path) ?? 0;
  if (count > 1) {
    uses.set(path, count - 1);
    return;
  }
  uses.delete(path);
  try {
    rmdirSync(path);
  } catch (error) {
    // It is gone, or no longer empty: it is the user's now.
    if (!(error instanceof Error && 'code' in error)) throw error;
  }
}
