// The server processes of this machine that were started from a file, read from /proc.

import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** Ids of Node processes that run the file with this argument, if one is given. */
export function processesOf(file: string, argument?: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((id) => {
      const [program = '', ...args] = commandOf(id);
      return basename(program) === 'node' && args.includes(file) && (argument === undefined || args.includes(argument));
    })
    .map(Number);
}

function commandOf(id: string): readonly string[] {
  try {
    return readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0');
  } catch (error) {
    // It has ended meanwhile.
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  }
}
