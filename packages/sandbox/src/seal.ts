// Seals paths for the time of a command: what is not there cannot be made either, and a link cannot be replaced for good.
//
// A mount needs something to cover, so an empty folder stands for what is missing: git does not show one. It is removed
// when the last command that needs it has ended, unless something was put into it from outside meanwhile.
//
// Two things a mount cannot do: cover a symbolic link, and stay when another drover in the same folder removes the empty
// folder under it. So a link that was replaced is restored, and what took the place of a link or a folder is renamed.

import { lstatSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmdirSync, symlinkSync } from 'node:fs';

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
    return removing(path);
  }
  if (found.isSymbolicLink()) {
    const target = readlinkSync(path);
    return () => restoreLink(path, target);
  }
  return isEmptyFolder(path) ? guarding(path) : undefined;
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

function removing(path: string): () => void {
  const guard = guarding(path);
  return () => {
    guard();
    try {
      rmdirSync(path);
    } catch (error) {
      // It is gone, or no longer empty: it is the user's now.
      if (!(error instanceof Error && 'code' in error)) throw error;
    }
  };
}

/** Sets aside what stands in the place of the folder that is there now. */
function guarding(path: string): () => void {
  const before = identityOf(path);
  return () => {
    const now = identityOf(path);
    if (now !== undefined && now !== before && !isEmptyFolder(path)) setAside(path);
  };
}

/** Inode numbers are used again, so the time of birth counts too. */
function identityOf(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  return found && `${found.isDirectory()} ${found.ino} ${found.birthtimeNs}`;
}

function isEmptyFolder(path: string): boolean {
  return lstatSync(path).isDirectory() && readdirSync(path).length === 0;
}

function setAside(path: string): void {
  renameSync(path, `${path}.replaced-${Date.now()}`);
}

function restoreLink(path: string, target: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isSymbolicLink() === true && readlinkSync(path) === target) return;
  if (found !== undefined) setAside(path);
  symlinkSync(target, path);
}
