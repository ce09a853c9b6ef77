// Seals paths for the time of a command: what is not there cannot be made either, and a link cannot be replaced for good.
//
// A mount needs something to cover, so an empty folder stands for what is missing: git does not show one. It is removed
// when the last command that needs it has ended, unless something was put into it from outside meanwhile. A mount cannot
// cover a symbolic link. So a link that was replaced is restored, and what took its place is kept beside it.

import { lstatSync, mkdirSync, readlinkSync, renameSync, rmdirSync, symlinkSync } from 'node:fs';

type Use = { readonly commands: number; readonly undo: () => void };

const uses = new Map<string, Use>(); // by path

export function seal(paths: readonly string[]): Disposable {
  const covered = paths.filter(cover);
  return {
    [Symbol.dispose]() {
      for (const path of covered) uncover(path);
    },
  };
}

/** Whether there is something to undo. */
function cover(path: string): boolean {
  const use = uses.get(path);
  const undo = use?.undo ?? prepare(path);
  if (undo === undefined) return false;
  uses.set(path, { commands: (use?.commands ?? 0) + 1, undo });
  return true;
}

function prepare(path: string): (() => void) | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    mkdirSync(path);
    return () => removePlaceholder(path);
  }
  if (!found.isSymbolicLink()) return undefined;
  const target = readlinkSync(path);
  return () => restoreLink(path, target);
}

function uncover(path: string): void {
  const use = uses.get(path);
  if (use === undefined) return;
  if (use.commands > 1) {
    uses.set(path, { ...use, commands: use.commands - 1 });
    return;
  }
  uses.delete(path);
  use.undo();
}

function removePlaceholder(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    // It is gone, or no longer empty: it is the user's now.
    if (!(error instanceof Error && 'code' in error)) throw error;
  }
}

function restoreLink(path: string, target: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isSymbolicLink() === true && readlinkSync(path) === target) return;
  if (found !== undefined) renameSync(path, `${path}.replaced-${Date.now()}`);
  symlinkSync(target, path);
}
