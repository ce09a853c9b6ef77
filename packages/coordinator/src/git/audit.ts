// Audits the user's checkout: a fingerprint before a run, one after it, and the differences.
//
// COMPARED
//   HEAD and its branch, the staged files, tracked files, untracked files that are not ignored, and the files that git
//   obeys or runs: config, hooks, info. Git checks unchanged tracked files by size, inode, mtime and ctime, and a
//   ctime can't be set back. All other files, and those git was told to ignore, are read.
//
// NOT A DIFFERENCE
//   Times. A touched file is unchanged, and so is an index in which git only refreshed times. For files that are too
//   large or too many to be read, times count.

import { createHash } from 'node:crypto';
import { type BigIntStats, createReadStream, lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { changedPathInRepository, gitOfRepository, type Repository } from './repository.ts';
import { objectOfIndexEntry, readGitIndex } from './index-file.ts';
import { isErrorCode } from './removal.ts';

const READ_BYTES_MAX = 256 * 1024 * 1024; // sum of all file sizes
const READ_FILE_BYTES_MAX = 32 * 1024 * 1024;
const FILES_MAX = 100_000;
const READ_AT_ONCE_BYTES_MAX = 256 * 1024; // opening a small file takes ten times as long as reading it
const HOOK_BYTES_MAX = 4 * 1024 * 1024;

/** Plain data, so that the journal can store it. */
export type Fingerprint = {
  readonly head: string;
  readonly branch: string; // empty if HEAD is detached
  readonly index: string;
  readonly config: string;
  readonly hooks: string;
  readonly info: string;
  /** Files that differ from HEAD. */
  readonly files: Readonly<Record<string, FilePrint>>;
};

type FilePrint = {
  readonly kind: string;
  readonly times: string;
  readonly content?: string; // absent if the file was not read
};

export async function fingerprintRepository(
  repository: Repository,
  env: Readonly<Record<string, string>>,
): Promise<Fingerprint> {
  const { gitDir, commonDir } = repository;
  const args = ['status', '--porcelain=v2', '--branch', '-z', '--no-renames', '--no-ahead-behind'];
  const more = ['--untracked-files=all', '--ignore-submodules=all'];
  const [{ out }, index, hooks] = await Promise.all([
    gitOfRepository(repository, env)([...args, ...more], { encoding: 'latin1' }),
    readStagedForAudit(repository),
    digestOfAuditedFolder(join(commonDir, 'hooks')),
  ]);
  const entries = out.split('\0');
  const header = (name: string) => entries.find((entry) => entry.startsWith(name))?.slice(name.length) ?? '';
  const branch = header('# branch.head ');
  const changed = entries.flatMap((entry) => changedPathInRepository(entry) ?? []);
  return {
    head: header('# branch.oid '),
    branch: branch === '(detached)' ? '' : branch,
    index: index.digest,
    config: digestOfAuditedFiles([join(commonDir, 'config'), join(gitDir, 'config.worktree')]),
    hooks,
    info: digestOfAuditedFiles([commonDir, gitDir].flatMap((folder) => INFO.map((name) => join(folder, 'info', name)))),
    files: await filePrintsOfRepository(repository.top, { changed, hidden: index.hidden }),
  };
}

const INFO = ['exclude', 'attributes', 'grafts', 'sparse-checkout'];

/** The differences in words; empty if there are none. */
export function differencesOfRepository(before: Fingerprint, after: Fingerprint): readonly string[] {
  const places = (Object.keys(WORDS) as (keyof typeof WORDS)[]).filter((place) => before[place] !== after[place]);
  // A file may have the name of a property of every object.
  const was = new Map(Object.entries(before.files));
  const is = new Map(Object.entries(after.files));
  const changed = [...new Set([...was.keys(), ...is.keys()])].filter(
    (path) => !isSameFilePrint(was.get(path), is.get(path)),
  );
  return [...places.map((place) => WORDS[place]), ...changed.toSorted()];
}

const WORDS = {
  head: 'HEAD',
  branch: 'the branch',
  index: 'the index',
  config: 'config',
  hooks: 'hooks',
  info: 'info',
} as const;

function isSameFilePrint(before: FilePrint | undefined, after: FilePrint | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  if (before.kind !== after.kind) return false;
  if (before.content !== undefined && after.content !== undefined) return before.content === after.content;
  return before.times === after.times;
}

type StagedPrint = { readonly digest: string; readonly hidden: readonly string[] };

async function readStagedForAudit({ gitDir, objectFormat }: Repository): Promise<StagedPrint> {
  // Git starts first, and examines the files in the meantime.
  await nextTurn();
  const bytes = auditedFileBytes(join(gitDir, 'index'));
  if (bytes === undefined) return { digest: '', hidden: [] };
  const index = readGitIndex(bytes, objectFormat);
  // If the index has an unknown format, every byte counts.
  if (index === undefined) return { digest: digestOfAuditedBytes(bytes), hidden: [] };
  // One digest call: with thousands of small pieces, each call costs more than the digest itself.
  const staged = index.entries.map((entry) => {
    const object = objectOfIndexEntry(bytes, entry, objectFormat).toString('latin1');
    return `${entry.mode} ${entry.flags} ${entry.path}\0${object}`;
  });
  const hash = createHash('sha256').update(staged.join(''), 'latin1');
  for (const extension of index.extensions) hash.update(extension);
  const hidden = index.entries.filter(({ isHidden }) => isHidden).map(({ path }) => path);
  return { digest: hash.digest('hex'), hidden };
}

type Paths = { readonly changed: readonly string[]; readonly hidden: readonly string[] };

// Paths have one character per byte; the report shows them as text.
async function filePrintsOfRepository(
  top: string,
  { changed, hidden }: Paths,
): Promise<Readonly<Record<string, FilePrint>>> {
  const prints: [string, FilePrint][] = [];
  const known = new Set(changed);
  let left = READ_BYTES_MAX;
  for (const path of [...changed, ...hidden].slice(0, FILES_MAX)) {
    const bytes = Buffer.from(path.replace(/\/$/, ''), 'latin1');
    const place = Buffer.concat([Buffer.from(`${top}/`), bytes]);
    const stat = lstatSync(place, { bigint: true, throwIfNoEntry: false });
    if (stat === undefined) {
      // Most of the files that git should ignore do not exist.
      if (known.has(path)) prints.push([bytes.toString('utf8'), { kind: 'absent', times: '' }]);
      continue;
    }
    const size = Number(stat.size);
    const mayRead = size <= Math.min(READ_FILE_BYTES_MAX, left);
    const content = mayRead ? await auditedFileContent(place, stat) : undefined;
    if (mayRead) left -= size;
    prints.push([
      bytes.toString('utf8'),
      { kind: auditedFileKind(stat), times: auditedFileTimes(stat), ...(content && { content }) },
    ]);
  }
  return Object.fromEntries(prints);
}

function auditedFileKind(stat: BigIntStats): string {
  if (stat.isFile()) return (stat.mode & 0o100n) === 0n ? 'file' : 'executable';
  return stat.isSymbolicLink() ? 'link' : stat.isDirectory() ? 'folder' : 'other';
}

function auditedFileTimes({ size, mtimeNs, ctimeNs, ino }: BigIntStats): string {
  return [size, mtimeNs, ctimeNs, ino].join(' ');
}

async function auditedFileContent(place: Buffer, stat: BigIntStats): Promise<string | undefined> {
  if (stat.isSymbolicLink()) return digestOfAuditedBytes(readlinkSync(place, { encoding: 'buffer' }));
  // A folder here is a separate repository, with its own history and its own audit.
  if (!stat.isFile()) return 'none';
  const hash = createHash('sha256');
  try {
    if (stat.size <= READ_AT_ONCE_BYTES_MAX) hash.update(readFileSync(place));
    else await pipeline(createReadStream(place), hash);
  } catch (error) {
    // The file is not readable, or was removed.
    if (isErrorCode(error, 'EACCES', 'EPERM', 'ENOENT')) return undefined;
    throw error;
  }
  return hash.digest('hex');
}

function digestOfAuditedFiles(paths: readonly string[]): string {
  const hash = createHash('sha256');
  for (const path of paths) {
    const bytes = auditedFileBytes(path);
    hash.update(`${bytes?.length ?? 'none'}\0`);
    if (bytes !== undefined) hash.update(bytes);
  }
  return hash.digest('hex');
}

async function digestOfAuditedFolder(folder: string): Promise<string> {
  const names: string[] = await readdir(folder).catch((error: unknown) => {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  });
  const hash = createHash('sha256');
  for (const name of names.toSorted()) {
    const path = join(folder, name);
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (stat === undefined) continue;
    const content = stat.size <= HOOK_BYTES_MAX ? await auditedFileContent(Buffer.from(path), stat) : undefined;
    hash.update(`${name}\0${auditedFileKind(stat)}\0${content ?? auditedFileTimes(stat)}\0`);
  }
  return hash.digest('hex');
}

function digestOfAuditedBytes(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function auditedFileBytes(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR', 'EISDIR')) return undefined;
    throw error;
  }
}
