// Drover's own index of a slot's tree, and the commit that it belongs to.
//
// A note names the commit and the digest of the index, so a crash between the two writes does no harm. An index whose
// final digest does not match its content was torn by a crash or changed by a worker. This process also remembers the
// index it wrote, so a later change can only come from a worker.

import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import type { ObjectFormat } from '../../git/repository.ts';
import { EMPTY_INDEX, HASH_BYTES, type IndexFile, readGitIndex } from '../../git/index-file.ts';
import { writeRenewedFile } from './own-file.ts';
import { CLOCK_MS } from './sweep.ts';

const SECOND_MS = 1_000;

export type KeptIndex = {
  readonly index: IndexFile;
  /** When it was written, or later while drover alone had the tree. */
  readonly writtenMs: number;
  /** The commit that it is an index of, if known. */
  readonly base: string | undefined;
};

type Note = { readonly base: string; readonly digest: string };

export class SlotIndex {
  readonly path: string;
  readonly #notePath: string;
  readonly #format: ObjectFormat;
  readonly #mode: number;
  #noted: Note | undefined;

  constructor(folder: string, format: ObjectFormat, mode: number) {
    this.path = join(folder, 'index');
    this.#notePath = join(folder, 'base');
    this.#format = format;
    this.#mode = mode;
  }

  /** Returns undefined unless drover, or git on its behalf, wrote the index. */
  read(): KeptIndex | undefined {
    const found = statSync(this.path, { throwIfNoEntry: false });
    if (found === undefined) return { index: EMPTY_INDEX, writtenMs: 0, base: undefined };
    const bytes = readFileSync(this.path);
    const index = readGitIndex(bytes, this.#format);
    const digest = digestInSlotIndex(bytes, this.#format);
    if (index === undefined || digest === undefined) return undefined;
    if (this.#noted !== undefined && this.#noted.digest !== digest) return undefined;
    const noted = this.#noted ?? noteOfSlotIndex(this.#notePath);
    return { index, writtenMs: found.mtimeMs, base: noted?.digest === digest ? noted.base : undefined };
  }

  /** Called before git writes the index. */
  expectChange(): void {
    this.#noted = undefined;
    // Git was killed while it wrote the index.
    rmSync(`${this.path}.lock`, { force: true });
  }

  /** A crash here leaves an index that `read` rejects. */
  write(bytes: Buffer): void {
    writeRenewedFile(this.path, bytes, this.#mode);
  }

  note(base: string): void {
    const digest = lastBytesOfSlotIndex(this.path, HASH_BYTES[this.#format]).toString('hex');
    this.#noted = { base, digest };
    writeRenewedFile(this.#notePath, `${base} ${digest}`, this.#mode);
  }

  remove(): void {
    this.#noted = undefined;
    rmSync(this.path, { force: true });
  }

  /**
   * Git reads every file that was written in the same second as the index, because it may have changed. After a
   * checkout that is every file. While drover alone has the tree, a later write time of the index is equally true, but
   * not one in a second that has just begun, since files may get late times.
   */
  settleTimes(): void {
    const second = Math.floor(statSync(this.path).mtimeMs / SECOND_MS);
    const now = Date.now();
    const isSafe = Math.floor(now / SECOND_MS) === second || now >= (second + 1) * SECOND_MS + CLOCK_MS;
    if (isSafe) utimesSync(this.path, now / SECOND_MS, now / SECOND_MS);
  }
}

// Returns the digest at the end of an index if it matches the rest.
function digestInSlotIndex(bytes: Buffer, format: ObjectFormat): string | undefined {
  const end = bytes.length - HASH_BYTES[format];
  const digest = bytes.toString('hex', end);
  return createHash(format).update(bytes.subarray(0, end)).digest('hex') === digest ? digest : undefined;
}

function lastBytesOfSlotIndex(path: string, count: number): Buffer {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(count);
    readSync(file, bytes, 0, count, fstatSync(file).size - count);
    return bytes;
  } finally {
    closeSync(file);
  }
}

function noteOfSlotIndex(path: string): Note | undefined {
  const [base, digest] = existsSync(path) ? readFileSync(path, 'utf8').split(' ') : [];
  return base === undefined || digest === undefined ? undefined : { base, digest };
}
