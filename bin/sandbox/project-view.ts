// The view that a sandbox gives of a project in which an agent works directly, in the user's own folder.
//
// The folder is writable. Git's own folder, and files that make another program run something later, are read-only: a
// command inside must not leave behind what the user's editor, shell or git would run outside.

import { type Dirent, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { isRunLater, RUN_LATER } from '@drover/core/permission/run-later';
import { isInSandboxPath, realPathForSandbox } from '@drover/sandbox/paths';

// Enough for a large repository; a mount costs time, so there are not too many.
const FOLDERS_MAX = 20_000;
const NESTED_MAX = 64;

export type ProjectView = { readonly readable: readonly string[]; readonly sealed: readonly string[] };

/** `root` is real, and so is `later`: further paths inside it that are read-only. */
export function sandboxProjectView(root: string, later: readonly string[] = []): ProjectView {
  const top = findGitTop(root);
  const git = top === undefined ? [] : listGitFolders(join(top, '.git'));
  const inside = git.filter((path) => isInSandboxPath(path, root));
  const names = [...RUN_LATER, ...later.map((path) => relative(root, path))];
  return {
    readable: [
      ...(top === undefined || top === root ? [] : [top]),
      ...git.filter((path) => !isInSandboxPath(path, root)),
    ],
    sealed: [
      ...new Set([
        ...names.flatMap((name) => listSealablePaths(root, name)),
        ...inside,
        ...findNestedRepositories(root),
      ]),
    ],
  };
}

/** Files of the same names further down, as far as they are there: of submodules, and of packages in the folder. */
function findNestedRepositories(root: string): readonly string[] {
  const found: string[] = [];
  const waiting = [root];
  for (let looked = 0; looked < FOLDERS_MAX && found.length < NESTED_MAX; looked++) {
    const folder = waiting.pop();
    if (folder === undefined) break;
    for (const entry of readFolderToSeal(folder)) {
      const path = join(folder, entry.name);
      if (folder !== root && isRunLater(relative(root, path))) found.push(path);
      else if (entry.isDirectory() && entry.name !== 'node_modules' && path !== join(root, '.git')) waiting.push(path);
    }
  }
  return found;
}

function readFolderToSeal(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    // It is gone, or not for this user.
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  }
}

/** The top of the repository that a folder is in. */
export function findGitTop(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    if (statSync(join(at, '.git'), { throwIfNoEntry: false }) !== undefined) return at;
    if (dirname(at) === at) return undefined;
  }
}

/** The path itself, or the first folder of it that is missing: then the whole folder is kept from being made. */
function listSealablePaths(root: string, name: string): readonly string[] {
  const parts = name.split('/');
  const folders = parts.map((_, at) => join(root, ...parts.slice(0, at + 1)));
  const wanted = folders.find((path) => !isRealFolderToSeal(path)) ?? join(root, name);
  // The target of a link inside the folder is sealed with it.
  if (lstatSync(wanted, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return [wanted];
  const real = realPathForSandbox(wanted);
  return isInSandboxPath(real, root) && real !== root ? [wanted, real] : [wanted];
}

function isRealFolderToSeal(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** The folder of a repository, and of the one whose worktree it is. A `.git` may be a file that names it. */
export function listGitFolders(path: string): readonly string[] {
  const named = statSync(path).isDirectory() ? path : readGitPathIn(path, /^gitdir: (.+)$/m);
  if (named === undefined) return [];
  const common = readGitPathIn(join(named, 'commondir'), /^(.+)$/m);
  return [...new Set([named, ...(common === undefined ? [] : [common])].map(realPathForSandbox))];
}

function readGitPathIn(file: string, pattern: RegExp): string | undefined {
  const found = pattern.exec(readGitText(file) ?? '')?.[1]?.trim();
  return found === undefined ? undefined : resolve(dirname(file), found);
}

function readGitText(file: string): string | undefined {
  try {
    return statSync(file).isFile() ? readFileSync(file, 'utf8') : undefined;
  } catch (error) {
    // There is none.
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}
