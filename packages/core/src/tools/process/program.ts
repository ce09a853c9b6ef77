// Where a program is: looked for on a PATH once, and not in every folder of it each time it is started.

import { statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

const EXECUTABLE = 0o111;

const known = new Map<string, string>(); // by name and PATH

/** Undefined where there is none. Folders that are meant from wherever a process is don't count: they could be a worker's. */
export function programOn(path: string, name: string): string | undefined {
  const key = `${name}\0${path}`;
  const before = known.get(key);
  if (before !== undefined && isProgram(before)) return before;
  for (const folder of path.split(delimiter)) {
    const file = join(folder, name);
    if (!isAbsolute(folder) || !isProgram(file)) continue;
    known.set(key, file);
    return file;
  }
  return undefined;
}

function isProgram(file: string): boolean {
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    return found?.isFile() === true && (found.mode & EXECUTABLE) !== 0;
  } catch (error) {
    // Not for us: the search goes on, as the system's own would.
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}
