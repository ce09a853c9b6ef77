// Reads git's index without git: its paths, and what it says of each.
//
// Paths have one character per byte, because they need not be valid in any encoding. An index in an unknown format
// gives `undefined`.

import type { BigIntStats, Stats } from 'node:fs';
import type { ObjectFormat } from './repository.ts';

const HEADER_BYTES = 12;
const STAT_BYTES = 40; // times, device, inode, mode, owner, size
const MTIME_OFFSET = 8;
const DEVICE_OFFSET = 16;
const INODE_OFFSET = 20;
const MODE_OFFSET = 24;
const OWNER_OFFSET = 28;
const GROUP_OFFSET = 32;
const SIZE_OFFSET = 36;
const SECOND_MS = 1_000;
const NS_A_MS = 1_000_000;
const NS_A_SECOND = 1_000_000_000n;
const NAME_LENGTH = 0x0fff;
const EXTENDED = 0x4000;
const ASSUME_VALID = 0x8000;
const SKIP_WORKTREE = 0x4000; // bit among the extended flags
export const HASH_BYTES: Readonly<Record<ObjectFormat, number>> = { sha1: 20, sha256: 32 };

const KIND = 0o170000;
const LINK = 0o120000;
const GITLINK = 0o160000;

// Caches of file states, which git updates even when it only reads. They say nothing about staged content.
const CACHES: ReadonlySet<string> = new Set(['UNTR', 'FSMN', 'EOIE', 'IEOT']);

export type IndexEntry = {
  readonly path: string; // one character per byte
  readonly kind: 'file' | 'link' | 'gitlink';
  readonly mode: number;
  readonly flags: number; // extended flags in the upper half
  /** Offset of the entry in the file. */
  readonly at: number;
  /** The user told git to ignore changes of this file. */
  readonly isHidden: boolean;
};

export type IndexFile = {
  readonly bytes: Buffer;
  readonly entries: readonly IndexEntry[];
  /** Other relevant content, such as the cached trees of the next commit. */
  readonly extensions: readonly Buffer[];
};

export const EMPTY_INDEX: IndexFile = { bytes: Buffer.alloc(0), entries: [], extensions: [] };

/** The object id of an entry's content. */
export function objectOfIndexEntry(bytes: Buffer, { at }: IndexEntry, format: ObjectFormat): Buffer {
  return bytes.subarray(at + STAT_BYTES, at + STAT_BYTES + HASH_BYTES[format]);
}

/** The file's stat data in the index: times, device, inode, mode, owner, size. */
export function statOfIndexEntry(bytes: Buffer, { at }: IndexEntry): Buffer {
  return bytes.subarray(at, at + STAT_BYTES);
}

/**
 * Returns true if a file is unchanged since it was written. Every change sets its ctime, which no process can choose. A
 * change at the moment of writing shows only in `indexEntryWrittenMs`.
 */
export function isFileAsIndexEntry(bytes: Buffer, { at }: IndexEntry, found: Stats): boolean {
  return (
    isIndexEntryTime(bytes, at, found.ctimeMs) &&
    isIndexEntryTime(bytes, at + MTIME_OFFSET, found.mtimeMs) &&
    bytes.readUInt32BE(at + INODE_OFFSET) === found.ino >>> 0 &&
    bytes.readUInt32BE(at + SIZE_OFFSET) === found.size >>> 0
  );
}

/** The latest time at which a file can have been written. */
export function indexEntryWrittenMs(bytes: Buffer, { at }: IndexEntry): number {
  return indexEntryLatestMs(bytes.readUInt32BE(at) * SECOND_MS + bytes.readUInt32BE(at + 4) / NS_A_MS);
}

/**
 * The latest moment that a stored time can stand for: some file systems and gits store whole seconds, and some every
 * other second.
 */
export function indexEntryLatestMs(ms: number): number {
  return ms % SECOND_MS === 0 ? ms + 2 * SECOND_MS : ms;
}

function isIndexEntryTime(bytes: Buffer, at: number, ms: number): boolean {
  const seconds = bytes.readUInt32BE(at);
  const nanoseconds = bytes.readUInt32BE(at + 4);
  // Computed like Node's, so that equal times are equal numbers.
  if (nanoseconds !== 0) return seconds * SECOND_MS + nanoseconds / NS_A_MS === ms;
  return seconds === Math.floor(ms / SECOND_MS);
}

export function sizeInIndexEntry(bytes: Buffer, { at }: IndexEntry): number {
  return bytes.readUInt32BE(at + SIZE_OFFSET);
}

/** Returns the index with the current stat data of these files. */
export function gitIndexWithTimes(
  index: Buffer,
  found: readonly (readonly [IndexEntry, BigIntStats])[],
  digest: (rest: Buffer) => Buffer,
): Buffer {
  const bytes = Buffer.from(index);
  const put = (offset: number, value: bigint) => bytes.writeUInt32BE(Number(value & 0xffffffffn), offset);
  for (const [{ at }, { ctimeNs, mtimeNs, dev, ino, uid, gid, size }] of found) {
    put(at, ctimeNs / NS_A_SECOND);
    put(at + 4, ctimeNs % NS_A_SECOND);
    put(at + MTIME_OFFSET, mtimeNs / NS_A_SECOND);
    put(at + MTIME_OFFSET + 4, mtimeNs % NS_A_SECOND);
    put(at + DEVICE_OFFSET, dev);
    put(at + INODE_OFFSET, ino);
    put(at + OWNER_OFFSET, uid);
    put(at + GROUP_OFFSET, gid);
    put(at + SIZE_OFFSET, size);
  }
  const { length } = digest(Buffer.alloc(0));
  const rest = bytes.subarray(0, bytes.length - length);
  digest(rest).copy(bytes, rest.length);
  return bytes;
}

export function readGitIndex(bytes: Buffer, format: ObjectFormat): IndexFile | undefined {
  const hashBytes = HASH_BYTES[format];
  if (bytes.length < HEADER_BYTES + hashBytes || bytes.toString('latin1', 0, 4) !== 'DIRC') return undefined;
  const version = bytes.readUInt32BE(4);
  if (version < 2 || version > 4) return undefined;
  const end = bytes.length - hashBytes;
  const count = bytes.readUInt32BE(8);
  const entries: IndexEntry[] = [];
  let at = HEADER_BYTES;
  let before = '';
  for (let n = 0; n < count; n++) {
    const read = readGitIndexEntry(bytes, at, { version, hashBytes, before });
    if (read === undefined || read.next > end) return undefined;
    entries.push(read.entry);
    before = read.entry.path;
    at = read.next;
  }
  const extensions = readGitIndexExtensions(bytes, at, end);
  return extensions === undefined ? undefined : { bytes, entries, extensions };
}

type Shape = { readonly version: number; readonly hashBytes: number; readonly before: string };

function readGitIndexEntry(
  bytes: Buffer,
  start: number,
  { version, hashBytes, before }: Shape,
): { readonly entry: IndexEntry; readonly next: number } | undefined {
  const flagsAt = start + STAT_BYTES + hashBytes;
  if (flagsAt + 4 > bytes.length) return undefined;
  const mode = bytes.readUInt32BE(start + MODE_OFFSET);
  const flags = bytes.readUInt16BE(flagsAt);
  const isExtended = (flags & EXTENDED) !== 0;
  const more = isExtended ? bytes.readUInt16BE(flagsAt + 2) : 0;
  let nameAt = flagsAt + (isExtended ? 4 : 2);
  let shared = '';
  if (version === 4) {
    const strip = readGitIndexOffset(bytes, nameAt);
    nameAt = strip.next;
    shared = before.slice(0, Math.max(0, before.length - strip.value));
  }
  const length = flags & NAME_LENGTH;
  const isShort = version < 4 && length < NAME_LENGTH;
  const nameEnd = isShort ? nameAt + length : bytes.indexOf(0, nameAt);
  if (nameEnd < 0) return undefined;
  const path = shared + bytes.toString('latin1', nameAt, nameEnd);
  const isHidden = (flags & ASSUME_VALID) !== 0 || (more & SKIP_WORKTREE) !== 0;
  // Up to version 3, one to eight zeros pad entries to a multiple of eight.
  const next = version === 4 ? nameEnd + 1 : start + Math.floor((nameEnd - start + 8) / 8) * 8;
  const allFlags = (more << 16) | (flags & ~NAME_LENGTH);
  return { entry: { path, kind: kindOfIndexEntry(mode), mode, flags: allFlags, isHidden, at: start }, next };
}

function kindOfIndexEntry(mode: number): IndexEntry['kind'] {
  const kind = mode & KIND;
  return kind === LINK ? 'link' : kind === GITLINK ? 'gitlink' : 'file';
}

// Seven bits per byte; the highest bit says that more follow, and each further byte adds one.
function readGitIndexOffset(bytes: Buffer, start: number): { readonly value: number; readonly next: number } {
  let at = start;
  let byte = bytes[at++] ?? 0;
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0 && at < bytes.length) {
    byte = bytes[at++] ?? 0;
    value = ((value + 1) << 7) | (byte & 0x7f);
  }
  return { value, next: at };
}

function readGitIndexExtensions(bytes: Buffer, start: number, end: number): readonly Buffer[] | undefined {
  const found: Buffer[] = [];
  let at = start;
  while (at < end) {
    if (at + 8 > end) return undefined;
    const name = bytes.toString('latin1', at, at + 4);
    const next = at + 8 + bytes.readUInt32BE(at + 4);
    if (next > end) return undefined;
    if (!CACHES.has(name)) found.push(bytes.subarray(at, next));
    at = next;
  }
  return found;
}
