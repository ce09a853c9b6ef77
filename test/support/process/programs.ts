// Finds programs that this machine may not have.

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Path of the first of these programs that is installed. */
export function findProgram(names: readonly string[]): string | undefined {
  return ['/usr/bin', ...(process.env['PATH'] ?? '').split(delimiter)]
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}
