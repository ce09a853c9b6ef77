// Restores a few files of the index without git, and updates their stat data in the index.
//
// Works only if a checkout would write the stored content unchanged. Attributes can change it; where they might, git
// restores the files.

import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ObjectFormat } from '../../git/repository.ts';
import type { Blobs } from '../../store/blobs.ts';
import {
  type IndexEntry,
  type IndexFile,
  objectOfIndexEntry,
  sizeInIndexEntry,
  gitIndexWithTimes,
} from '../../git/index-file.ts';
import { isErrorCode } from '../../git/removal.ts';
import { sweptPathOf } from './sweep.ts';

const FILES_MAX = 500;
const BYTES_MAX = 16 * 1024 * 1024;
const ATTRIBUTES = /(^|\/)\.gitattributes$/;
// Attributes that make a file differ from its blob. Drover runs no filter, but git may have its own.
const CONVERTS = /crlf|ident|encoding|filter/i;

export type RestoreOrder = {
  readonly top: string;
  readonly index: IndexFile;
  readonly format: ObjectFormat;
  readonly missing: readonly IndexEntry[];
  readonly blobs: Blobs;
};

/** Returns the new index; undefined if git has to restore the files. Some may be written already. */
export async function restoreSlotFiles(order: RestoreOrder): Promise<Buffer | undefined> {
  const { top, index, format, missing } = order;
  if (!isSimpleRestore(order)) return undefined;
  const contents = await order.blobs.read(
    missing.map((entry) => objectOfIndexEntry(index.bytes, entry, format).toString('hex')),
  );
  if (contents === undefined) return undefined;
  try {
    missing.forEach((entry, n) => writeRestoredFile(top, entry, contents[n] ?? Buffer.alloc(0)));
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
  const found = missing.map((entry) => [entry, lstatSync(sweptPathOf(top, entry.path), { bigint: true })] as const);
  return gitIndexWithTimes(index.bytes, found, (rest) => createHash(format).update(rest).digest());
}

function isSimpleRestore({ top, index, missing }: RestoreOrder): boolean {
  if (missing.length > FILES_MAX || missing.some(({ kind, flags }) => kind === 'gitlink' || flags !== 0)) return false;
  const bytes = missing.reduce((sum, entry) => sum + sizeInIndexEntry(index.bytes, entry), 0);
  if (bytes > BYTES_MAX) return false;
  const attributes = index.entries.filter(({ path }) => ATTRIBUTES.test(path));
  return attributes.every((entry) => !missing.includes(entry) && !restoreConvertsFile(top, entry));
}

// Attribute files that exist are as drover wrote them.
function restoreConvertsFile(top: string, { kind, path }: IndexEntry): boolean {
  return kind !== 'file' || CONVERTS.test(readFileSync(sweptPathOf(top, path), 'latin1'));
}

function writeRestoredFile(top: string, { path, kind, mode }: IndexEntry, content: Buffer): void {
  const place = sweptPathOf(top, path);
  const make = () => {
    if (kind === 'link') symlinkSync(content, place);
    else writeFileSync(place, content, { flag: 'wx', mode: (mode & 0o100) === 0 ? 0o666 : 0o777 });
  };
  try {
    make();
  } catch (error) {
    if (!isErrorCode(error, 'ENOENT')) throw error;
    mkdirSync(sweptPathOf(top, dirname(path)), { recursive: true });
    make();
  }
}
