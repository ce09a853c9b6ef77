// Writes commits and branches into the store without git: they are small files in a known format, and starting git for
// each takes longer than the rest of a commit. The store is drover's own (store.ts); nothing is ever written this way
// into the user's repository.

import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { DroverError } from '@drover/core/errors';
import type { Identity, ObjectFormat } from '../git/repository.ts';
import { isErrorCode } from '../git/removal.ts';

const FOLDER_CHARS = 2; // characters of an object id
const READ_ONLY = 0o444;

export type StorePlace = { readonly gitDir: string; readonly objectFormat: ObjectFormat };

export type NewCommit = {
  readonly tree: string;
  readonly parent: string;
  readonly message: string;
  readonly by: Identity;
  readonly when: string; // ISO time
};

/** Returns its id. Writing the same commit again gives the same object. */
export async function writeStoreCommit({ gitDir, objectFormat }: StorePlace, commit: NewCommit): Promise<string> {
  const text = Buffer.from(storeCommitText(commit));
  const object = Buffer.concat([Buffer.from(`commit ${text.length}\0`), text]);
  const id = createHash(objectFormat).update(object).digest('hex');
  const path = join(gitDir, 'objects', id.slice(0, FOLDER_CHARS), id.slice(FOLDER_CHARS));
  await orStoreFailed('a commit could not be written', async () => {
    // Like git, syncs no object; the branch is synced, once all its objects are written.
    if (!(await isStoreObjectRenewed(path)))
      await writeStoreFileWhole(path, deflateSync(object), { mode: READ_ONLY, sync: false });
  });
  return id;
}

/** Moves the branch from any commit. */
export async function writeStoreBranch({ gitDir }: StorePlace, branch: string, commit: string): Promise<void> {
  const path = join(gitDir, 'refs', 'heads', branch);
  await orStoreFailed('a branch could not be written', () =>
    writeStoreFileWhole(path, `${commit}\n`, { mode: 0o666, sync: true }),
  );
}

function storeCommitText({ tree, parent, message, by, when }: NewCommit): string {
  const seconds = Math.floor(Date.parse(when) / 1_000);
  const person = `${plainStoreName(by.name) || 'drover'} <${plainStoreName(by.email)}> ${seconds} +0000`;
  return `tree ${tree}\nparent ${parent}\nauthor ${person}\ncommitter ${person}\n\n${message}`;
}

// Cleans a name like git: without characters that end the line or the name, and without punctuation at both ends.
function plainStoreName(name: string): string {
  return name.replaceAll(/[\n<>]/g, '').replaceAll(/^[\0- .,:;"\\']+|[\0- .,:;"\\']+$/g, '');
}

/** Renews the time of an existing object, so that gc does not treat it as old. */
async function isStoreObjectRenewed(path: string): Promise<boolean> {
  const now = new Date();
  return utimes(path, now, now).then(
    () => true,
    (error: unknown) => {
      if (isErrorCode(error, 'ENOENT')) return false;
      throw error;
    },
  );
}

// Writes atomically: the file is complete or absent.
async function writeStoreFileWhole(
  path: string,
  content: string | Buffer,
  { mode, sync }: { readonly mode: number; readonly sync: boolean },
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const draft = join(dirname(path), `tmp_${randomUUID()}.lock`);
  try {
    await using file = await open(draft, 'wx', mode);
    await file.writeFile(content);
    if (sync) await file.datasync();
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function orStoreFailed(what: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause)) throw cause;
    throw new DroverError({ kind: 'store.failed', message: `${what}: ${cause.message}` }, { cause });
  }
}
