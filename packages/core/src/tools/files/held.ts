// Access that no exchanged folder can lead elsewhere. Between the check of a path and its use, a command of another
// session in the same folder could put a link in the place of a folder.
//
// Guarantees, on Linux
//   1. An opened file or folder was at its path when it was opened, or is refused.
//   2. A held folder is the same one until it is closed, whatever happens to its path.
//   3. Missing folders are made inside held ones only.
//
// Elsewhere there is no /proc/self/fd: paths are used as they are.

import { constants, readlinkSync } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ToolError } from '../../errors.ts';
import { fileErrorCode } from './paths.ts';

const O_PATH = 0x20_0000; // Node has no constant for it
const isLinux = process.platform === 'linux';

export type HeldFolder = AsyncDisposable & {
  /** A path that leads to this folder even if the folder is renamed or replaced. */
  readonly at: string;
};

/** Throws ToolError if the open file is not at its real path. */
export function checkHeldFile(
  { fd }: FileHandle,
  { real, shown }: { readonly real: string; readonly shown: string },
): void {
  if (!isLinux) return;
  const place = readlinkSync(`/proc/self/fd/${fd}`);
  // The system reports a file that was replaced meanwhile as deleted.
  if (place === real || place === `${real} (deleted)`) return;
  throw new ToolError(`${shown} was exchanged for something else while it was opened: try again`);
}

/** Opens a folder by its real path. With `make`, missing folders are made. Throws the errors of open. */
export async function holdFileFolder(real: string, { make = false, shown = real } = {}): Promise<HeldFolder> {
  if (!isLinux) {
    if (make) await mkdir(real, { recursive: true });
    return { at: real, [Symbol.asyncDispose]: async () => undefined };
  }
  const handle = await openHeldFolder(real).catch(async (error: unknown) => {
    if (!make || fileErrorCode(error) !== 'ENOENT') throw error;
    await using above = await holdFileFolder(dirname(real), { make, shown });
    const inside = join(above.at, basename(real));
    await mkdir(inside).catch((problem: unknown) => {
      if (fileErrorCode(problem) !== 'EEXIST') throw problem;
    });
    return await openHeldFolder(inside);
  });
  try {
    checkHeldFile(handle, { real, shown });
  } catch (error) {
    await handle.close();
    throw error;
  }
  return { at: `/proc/self/fd/${handle.fd}`, [Symbol.asyncDispose]: () => handle.close() };
}

function openHeldFolder(path: string): Promise<FileHandle> {
  return open(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
}
