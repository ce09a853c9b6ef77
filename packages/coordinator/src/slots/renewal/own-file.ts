// Writes a file of drover's own at a path that workers can reach. Drover never writes through a link, a pipe or a
// second name that a worker put there.
//
// A file with the right content stays, and one that is still drover's is written in place: reading costs a tenth of
// that, and a new file several times as much.

import { lstatSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const PERMISSIONS = 0o7777;
const COMPARED_BYTES_MAX = 16 * 1024; // writing a larger file again is faster than comparing it

export function writeRenewedFile(path: string, content: string | Buffer, mode: number): void {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true || found.nlink !== 1 || (found.mode & PERMISSIONS) !== mode) {
    rmSync(path, { recursive: true, force: true });
    writeFileSync(path, bytes, { flag: 'wx' });
    return;
  }
  const isAsLong = found.size === bytes.length;
  if (isAsLong && bytes.length <= COMPARED_BYTES_MAX && readFileSync(path).equals(bytes)) return;
  writeFileSync(path, bytes, { flag: isAsLong ? 'r+' : 'w' });
}

/** The mode of drover's files, derived from the mode of its folders. */
export function modeOfRenewedFile(folderMode: number): number {
  return folderMode & 0o666;
}
