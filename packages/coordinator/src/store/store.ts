// The store: drover's bare repository for one user repository, with all objects and branches of its runs.
//
//   <home>/workspaces/<key>/repository.json   the repository it belongs to
//                           store.git/        borrows the user's objects; git refreshes the time of one it needs again
//                           slots/            see slot.ts
//
// Creating the store is idempotent: a run completes it after a crash or a removal.

import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { gitAt, quotedGitPath, type Git } from '../git/git.ts';
import { gitObjectFolders, type Identity, type ObjectFormat, type Repository } from '../git/repository.ts';
import { isErrorCode } from '../git/removal.ts';
import { type NewCommit, writeStoreBranch, writeStoreCommit } from './store-writing.ts';

const NAME_CHARS_MAX = 40;
const DIGEST_CHARS = 12;

export type Store = {
  readonly folder: string; // the folder for everything drover stores about this repository
  readonly gitDir: string;
  readonly slotsFolder: string;
  readonly git: Git;
  readonly commit: (commit: NewCommit) => Promise<string>;
  readonly branch: (branch: string, commit: string) => Promise<void>;
};

export type StoreOptions = {
  readonly home: string;
  readonly repository: Repository;
  readonly env: Readonly<Record<string, string>>;
};

export const REPOSITORY_FILE = 'repository.json';
export const STORE_FOLDER = 'store.git';
export const SLOTS_FOLDER = 'slots';

export function workspacesFolder(home: string): string {
  return join(home, 'workspaces');
}

/** Throws UsageError if drover's home is inside the repository. */
export async function openStore({ home, repository, env }: StoreOptions): Promise<Store> {
  await mkdir(workspacesFolder(home), { recursive: true });
  const root = await realpath(workspacesFolder(home));
  if (isInsideStore(root, repository.top) || isInsideStore(root, repository.commonDir)) {
    throw new UsageError(
      `drover's home ${home} is inside the repository it would work on: set DROVER_HOME to a folder outside of ${repository.top}`,
    );
  }
  const folder = join(root, await storeKeyOfRepository(repository));
  const gitDir = join(folder, STORE_FOLDER);
  const slotsFolder = join(folder, SLOTS_FOLDER);
  await mkdir(slotsFolder, { recursive: true });
  await writeStore(gitDir, repository);
  const { top, commonDir } = repository;
  await writeWholeStoreFile(join(folder, REPOSITORY_FILE), `${JSON.stringify({ top, commonDir })}\n`);
  const place = { gitDir, objectFormat: repository.objectFormat };
  return {
    folder,
    gitDir,
    slotsFolder,
    git: gitAt({ gitDir, env }),
    commit: (commit) => writeStoreCommit(place, commit),
    branch: (branch, commit) => writeStoreBranch(place, branch, commit),
  };
}

export function isInsideStore(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === '' || (way !== '..' && !way.startsWith('../'));
}

// All checkouts of one repository share a store. The name helps users to recognize it.
async function storeKeyOfRepository({ commonDir }: Repository): Promise<string> {
  const real = await realpath(commonDir);
  const name = basename(real) === '.git' ? basename(dirname(real)) : basename(real);
  const digest = createHash('sha256').update(real).digest('hex').slice(0, DIGEST_CHARS);
  return `${name.replaceAll(/[^\w.-]+/g, '-').slice(0, NAME_CHARS_MAX)}-${digest}`;
}

async function writeStore(gitDir: string, repository: Repository): Promise<void> {
  const { objectFormat, commonDir, objects } = repository;
  await Promise.all(
    [join('objects', 'info'), join('refs', 'heads')].map((path) => mkdir(join(gitDir, path), { recursive: true })),
  );
  const borrowed = await gitObjectFolders(objects);
  await Promise.all([
    writeWholeStoreFile(join(gitDir, 'HEAD'), 'ref: refs/heads/none\n'),
    writeWholeStoreFile(join(gitDir, 'config'), storeConfigText({ objectFormat, isBare: true })),
    writeWholeStoreFile(
      join(gitDir, 'objects', 'info', 'alternates'),
      borrowed.map((path) => `${quotedGitPath(path)}\n`).join(''),
    ),
    copyShallowFileToStore(commonDir, gitDir),
  ]);
}

// A file marks a repository without its whole history; a repository that borrows its objects needs the same file.
async function copyShallowFileToStore(from: string, to: string): Promise<void> {
  const text = await storeTextOf(join(from, 'shallow'));
  if (text === undefined) await rm(join(to, 'shallow'), { force: true });
  else await writeWholeStoreFile(join(to, 'shallow'), text);
}

export function storeConfigText(given: {
  readonly objectFormat: ObjectFormat;
  readonly isBare: boolean;
  readonly identity?: Identity;
}): string {
  const { objectFormat, isBare, identity } = given;
  const isMac = process.platform === 'darwin';
  return [
    '[core]',
    `\trepositoryformatversion = ${objectFormat === 'sha1' ? 0 : 1}`,
    '\tfilemode = true',
    `\tbare = ${isBare}`,
    `\tlogallrefupdates = ${!isBare}`,
    ...(isMac ? ['\tignorecase = true', '\tprecomposeunicode = true'] : []),
    ...(objectFormat === 'sha1' ? [] : ['[extensions]', `\tobjectformat = ${objectFormat}`]),
    '[gc]',
    '\tauto = 0',
    ...(isBare ? ['[uploadpack]', '\tallowAnySHA1InWant = true'] : []),
    ...(identity === undefined
      ? []
      : ['[user]', `\tname = ${quotedStoreValue(identity.name)}`, `\temail = ${quotedStoreValue(identity.email)}`]),
    '',
  ].join('\n');
}

function quotedStoreValue(value: string): string {
  return `"${value.replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`;
}

// Writes atomically, and not at all if the content is the same.
async function writeWholeStoreFile(path: string, text: string): Promise<void> {
  if ((await storeTextOf(path)) === text) return;
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, text);
  await rename(draft, path);
}

export async function storeTextOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  });
}
