// Ends a git that waits forever, because a worker put a pipe in place of `.gitignore` or `.gitattributes`.
//
// Searching every tree would cost more than most commits. So the tree is searched only once git takes long, and the
// signal is aborted only if there is such a pipe.

import { type Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DroverError } from '@drover/core/errors';
import { isErrorCode } from '../git/removal.ts';

const LOOK_AFTER_MS = 2_000;
const FOLDERS_MAX = 200_000;
const READ_BY_GIT = ['.gitignore', '.gitattributes'];

/** Dispose of the result when git has ended. */
export function watchPipesInSlot(tree: string): Disposable & { readonly signal: AbortSignal } {
  const found = new AbortController();
  let isOver = false;
  const look = async () => {
    if (!(await hasSlotPipe(tree, () => isOver))) return;
    const message = 'a pipe stands where git reads a file';
    found.abort(new DroverError({ kind: 'workspace.failed', message }));
  };
  const timer = setTimeout(() => void look(), LOOK_AFTER_MS);
  return {
    signal: found.signal,
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

async function hasSlotPipe(tree: string, isOver: () => boolean): Promise<boolean> {
  const waiting = [tree];
  for (let n = 0; n < FOLDERS_MAX && !isOver(); n++) {
    const folder = waiting.pop();
    if (folder === undefined) return false;
    for (const entry of await slotEntriesForPipes(folder)) {
      if (entry.isDirectory() && entry.name !== '.git') waiting.push(join(folder, entry.name));
      else if (READ_BY_GIT.includes(entry.name) && !entry.isFile() && !entry.isSymbolicLink()) return true;
    }
  }
  return false;
}

async function slotEntriesForPipes(folder: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    // The folder is gone, unreadable or too deep: git does not read it either.
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ENAMETOOLONG')) return [];
    throw error;
  }
}
