// Commits and branches, written into the store by drover itself: they are small files of a known form, and starting
// a git for each takes longer than all the rest of a commit. The store is drover's own (store.ts); in the user's
// repository nothing is ever written like this.

import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { DroverError } from '@drover/core/errors';
import type { Identity, ObjectFormat } from '../git/repository.ts';
import { isCode } from '../git/removal.ts';

const FOLDER_CHARS = 2; // of an object's id
const READ_ONLY = 0o444;

export type StorePlace = { readonly gitDir: string; readonly objectFormat: ObjectFormat };

export type NewCommit = {
  readonly tree: string;
  readonly parent: string;
  readonly message: string;
  readonly by: Identity;
  readonly when: string; // ISO
};

/** Gives its id. The same commit written again is the same object. */
export async function writeCommit({ gitDir, objectFormat }: StorePlace, commit: NewCommit): Promise<string> {
  const text = Buffer.from(commitText(commit));
  const object = Buffer.concat([Buffer.from(`commit ${text.length}\0`), text]);
  const id = createHash(objectFormat).update(object).digest('hex');
  const path = join(gitDir, 'objects', id.slice(0, FOLDER_CHARS), id.slice(FOLDER_CHARS));
  await orFailed('a commit could not be written', async () => {
    // As git does with objects. The branch is what is made to last, once all of it is there.
    if (!(await isRenewed(path))) await writeWhole(path, deflateSync(object), { mode: READ_ONLY, sync: false });
  });
  return id;
}

/** Moves the branch from any commit. */
export async function writeBranch({ gitDir }: StorePlace, branch: string, commit: string): Promise<void> {
  const path = join(gitDir, 'refs', 'heads', branch);
  await orFailed('a branch could not be written', () => writeWhole(path, `${commit}\n`, { mode: 0o666, sync: true }));
}

function commitText({ tree, parent, message, by, when }: NewCommit): string {
  const seconds = Math.floor(Date.parse(when) / 1_000);
  const person = `${plain(by.name) || 'drover'} <${plain(by.email)}> ${seconds} +0000`;
  return `tree ${tree}\nparent ${parent}\nauthor ${person}\ncommitter ${person}\n\n${message}`;
}

// As git has it: without what would end the line or the name, and without what is no part of a name at its ends.
function plain(name: string): string {
  return name.replaceAll(/[\n<>]/g, '').replaceAll(/^[\0- .,:;"\\']+|[\0- .,:;"\\']+$/g, '');
}

/** Renews the time of an existing object, so that gc does not take it for old. */
async function isRenewed(path: string): Promise<boolean> {
  const now = new Date();
  return utimes(path, now, now).then(
    () => true,
    (error: unknown) => {
      if (isCode(error, 'ENOENT')) return false;
      throw error;
    },
  );
}

// There whole, or not at all.
async function writeWhole(
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

async function orFailed(what: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause)) throw cause;
    throw new DroverError({ kind: 'store.failed', message: `${what}: ${cause.message}` }, { cause });
  }
}
