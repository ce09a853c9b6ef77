// Finds programs on a PATH and caches the result, so that a start does not search every folder again.

import { statSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { isInSandboxPath, realPathForSandbox } from '@drover/sandbox/paths';

const EXECUTABLE = 0o111;

const known = new Map<string, string>(); // by name and PATH

const distrusted = new Set<string>();

/**
 * Stops this thread from running programs in these folders outside the sandbox: commands inside the sandbox may
 * have written them.
 */
export function distrustProgramFolders(folders: readonly string[]): void {
  for (const folder of folders) distrusted.add(folder);
  trusted.clear();
}

const trusted = new Map<string, string>(); // by PATH

// Lists of folders from which a process takes programs or libraries.
const LISTS = ['PATH', 'LD_LIBRARY_PATH'];
// Settings of git, which name programs.
const SETTINGS = ['XDG_CONFIG_HOME', 'GIT_CONFIG_GLOBAL'];

/** Returns the environment of a process outside the sandbox: nothing in it leads to a distrusted folder. */
export function environmentOfTrustedPrograms(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (distrusted.size === 0) return env;
  const checked = { ...env };
  for (const name of LISTS) {
    const list = env[name];
    if (list === undefined) continue;
    checked[name] = pathOfTrustedPrograms(list);
    // An empty list of libraries means the current folder.
    if (name !== 'PATH' && checked[name] === '') delete checked[name];
  }
  for (const name of SETTINGS) {
    const place = env[name];
    if (place !== undefined && isProgramFolderDistrusted(place)) delete checked[name];
  }
  return checked;
}

/** Returns a PATH without distrusted folders, for a process outside the sandbox. */
export function pathOfTrustedPrograms(path: string): string {
  if (distrusted.size === 0) return path;
  const before = trusted.get(path);
  if (before !== undefined) return before;
  const folders = path.split(delimiter).filter((folder) => isAbsolute(folder) && !isProgramFolderDistrusted(folder));
  trusted.set(path, folders.join(delimiter));
  return folders.join(delimiter);
}

function isProgramFolderDistrusted(folder: string): boolean {
  if (distrusted.size === 0) return false;
  const real = realPathForSandbox(folder);
  return [...distrusted].some((each) => isInSandboxPath(folder, each) || isInSandboxPath(real, each));
}

/** Returns the path of a program, or undefined. Skips relative folders, which a worker could write. */
export function findProgramOn(path: string, name: string): string | undefined {
  const key = `${name}\0${path}`;
  const before = known.get(key);
  if (before !== undefined && isProgramFile(before) && !isProgramFolderDistrusted(dirname(before))) return before;
  for (const folder of path.split(delimiter)) {
    const file = join(folder, name);
    if (!isAbsolute(folder) || isProgramFolderDistrusted(folder) || !isProgramFile(file)) continue;
    known.set(key, file);
    return file;
  }
  return undefined;
}

/** Says that a program is only where drover runs none. Undefined if it is nowhere on the PATH, or elsewhere too. */
export function findDistrustedReason(path: string, name: string): string | undefined {
  if (findProgramOn(path, name) !== undefined) return undefined;
  const folder = path.split(delimiter).find((each) => isAbsolute(each) && isProgramFile(join(each, name)));
  if (folder === undefined) return undefined;
  return `${name} is only in ${folder}, where commands of agents can write, so drover does not run it outside the sandbox; put another ${name} on the PATH`;
}

function isProgramFile(file: string): boolean {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    return found?.isFile() === true && (found.mode & EXECUTABLE) !== 0;
  } catch (error) {
    // Not accessible: continue the search, as the system does.
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}
