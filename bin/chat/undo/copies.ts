// Copies of files for the undo log: byte for byte, named after the path and the state of the file.

import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { chmod, copyFile, lstat, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { toolPathInside } from '@drover/core/tools/files/paths';
import { lstatIfThere } from '@drover/core/files/lookup';

const FILE_BYTES_MAX = 20_000_000;

/** A file before a turn. `copy` is null if there was none. `stamp` changes whenever the file does. */
export type Copy = {
  readonly path: string; // relative to the folder
  readonly copy: string | null;
  readonly mode: number;
  readonly stamp: string | null;
};

export class Copies {
  readonly #folder: string;
  readonly #cwd: string;

  constructor(folder: string, cwd: string) {
    this.#folder = folder;
    this.#cwd = cwd;
  }

  /** Copies a file. Links and files that are too large are not copied, and so never undone. */
  async keep(path: string): Promise<Copy> {
    const found = await this.#look(path);
    if (found === undefined) return { path, copy: null, mode: 0, stamp: null };
    const { stamp, mode, size, isFile } = found;
    if (!isFile || size > FILE_BYTES_MAX) return { path, copy: null, mode, stamp };
    const copy = createHash('sha256').update(`${path}\0${stamp}`).digest('hex').slice(0, 32);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    // The copy of an earlier turn will do if the file has not changed since.
    if ((await lstatIfThere(join(this.#folder, copy))) === undefined) {
      await copyFile(join(this.#cwd, path), join(this.#folder, `${copy}.new`), constants.COPYFILE_FICLONE);
      await chmod(join(this.#folder, `${copy}.new`), 0o600);
      await rename(join(this.#folder, `${copy}.new`), join(this.#folder, copy));
    }
    return { path, copy, mode, stamp };
  }

  /** Whether the file is as it was, by its stamp alone. Also true for files that were not copied. */
  async isUntouched({ path, stamp, copy }: Copy): Promise<boolean> {
    const now = await this.#look(path);
    if (stamp !== null && copy === null) return true;
    return (now?.stamp ?? null) === stamp;
  }

  /** Hash of the content now; null if there is no file. */
  hashOf(path: string): Promise<string | null> {
    return hashUndoCopy(join(this.#cwd, path));
  }

  async hashBefore({ copy }: Copy): Promise<string | null> {
    return copy === null ? null : hashUndoCopy(join(this.#folder, copy));
  }

  async textOf({ copy }: Copy): Promise<string | undefined> {
    return copy === null ? undefined : readFile(join(this.#folder, copy), 'utf8');
  }

  /** Makes the file what it was. Throws UsageError if its path leads out of the folder now. */
  async restore({ path, copy, mode }: Copy): Promise<void> {
    const { real } = await toolPathInside(this.#cwd, path).catch((error: unknown) => {
      throw new UsageError(`${path} is not restored: its path leads out of the folder now`, { cause: error });
    });
    if (copy === null) return rm(real, { force: true });
    await mkdir(dirname(real), { recursive: true });
    const temporary = `${real}.drover-undo`;
    await copyFile(join(this.#folder, copy), temporary);
    await chmod(temporary, mode & 0o7777);
    await rename(temporary, real);
  }

  async #look(path: string) {
    try {
      const { size, mtimeNs, ctimeNs, ino, mode, ...kind } = await lstat(join(this.#cwd, path), { bigint: true }).then(
        (stats) => Object.assign(stats, { file: stats.isFile() }),
      );
      return {
        stamp: `${size} ${mtimeNs} ${ctimeNs} ${ino}`,
        size: Number(size),
        mode: Number(mode),
        isFile: kind.file,
      };
    } catch (error) {
      if (isMissingCopy(error)) return undefined;
      throw error;
    }
  }
}

async function hashUndoCopy(path: string): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
    return hash.digest('hex');
  } catch (error) {
    if (isMissingCopy(error)) return null;
    throw error;
  }
}

function isMissingCopy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ['ENOENT', 'ENOTDIR', 'EISDIR'].includes(String(error.code));
}
