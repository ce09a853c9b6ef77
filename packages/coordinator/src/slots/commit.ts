// Commits the changes of a worker on its base, whatever the worker did with its own git.
//
// Everything is staged into a copy of drover's index, by the repository's ignore rules, and objects go straight to the
// store. The same tree at the same date gives the same commit id, so a commit can be repeated.
//
// A git repository inside the workspace would become a link to a commit that is nowhere else. It is left out with a
// warning, because it is not this repository's work. If nothing else changed, that is a failure, so that no work is
// lost silently.

import { chmodSync, type Dirent, lstatSync, readdirSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DroverError } from '@drover/core/errors';
import { isLeftoverFile } from '@drover/core/tools/files/leftovers';
import type { Git, GitAnswer } from '../git/git.ts';
import type { Identity } from '../git/repository.ts';
import { ABSENT, type Change, GITLINK } from '../git/index-changes.ts';
import { isErrorCode } from '../git/removal.ts';
import type { Differences, Slot } from './slot.ts';
import type { Store } from '../store/store.ts';
import { copyIndexToRenewedSlot } from './renewal/worker-git.ts';
import { watchPipesInSlot } from './watch-pipes.ts';

const ENTRIES_OPENED_MAX = 500_000;

export type CommitOrder = {
  readonly message: string;
  readonly when: string; // ISO date of the commit
  readonly branch: string; // without refs/heads/
};

export type Committed = {
  readonly commit: string;
  readonly files: readonly string[];
  /** Repositories inside the workspace, which can't be part of a commit. */
  readonly leftOut: readonly string[];
};

export type Committing = CommitOrder & {
  readonly slot: Slot;
  readonly base: string;
  readonly identity: Identity;
  readonly keepOut: readonly string[]; // paths that are not the worker's, such as those of setup
  readonly store: Store;
};

/** Returns undefined if nothing was changed. */
export async function commitSlotTree(order: Committing): Promise<Committed | undefined> {
  const { slot, branch, store } = order;
  if (!slot.hasTree()) throw slotCommitFailed('the workspace is gone, or a link stands in its place');
  const draft = join(slot.folder, 'git', 'index.commit');
  rmSync(`${draft}.lock`, { force: true });
  const git = slot.git(draft);
  // A worker that changed drover's index could have hidden its changes.
  if (slot.hasIndexOf(order.base)) copyIndexToRenewedSlot(slot.index, draft);
  else await git(['read-tree', '--reset', order.base]);
  const nested = await stageSlotPaths(git, order);
  const { changes, touched, links } = await siftSlotChanges(git, { ...order, draft });
  slot.see({ touched });
  const leftOut = [...new Set([...nested, ...links])].toSorted().map(shownSlotPath);
  if (changes.length === 0 && leftOut.length > 0) {
    throw slotCommitFailed(
      `all changes are inside a git repository of its own, which can't be part of a commit: ${leftOut.join(', ')}`,
    );
  }
  if (changes.length === 0) return undefined;
  const { base: parent, identity, when } = order;
  const tree = (await git(['write-tree'])).out.trim();
  const message = order.message.replaceAll('\0', '');
  const commit = await store.commit({ tree, parent, message, by: identity, when });
  await store.branch(branch, commit);
  rmSync(draft, { force: true });
  return { commit, files: changes.map(shownSlotPath), leftOut };
}

function slotCommitFailed(message: string): DroverError {
  return new DroverError({ kind: 'workspace.failed', message });
}

// Paths have one character per byte up to here.
function shownSlotPath(path: string): string {
  return Buffer.from(path, 'latin1').toString('utf8');
}

/**
 * Returns the repositories that were left out. Git must not look into one: it would start another git there, and that
 * runs filters which the worker has configured.
 */
async function stageSlotPaths(git: Git, { slot }: Committing): Promise<readonly string[]> {
  using watch = watchPipesInSlot(slot.tree);
  const { nested, problem } = await stageSlot(git, watch.signal).catch((error: unknown) => {
    if (error instanceof DroverError) return { nested: [], problem: error.message };
    throw error;
  });
  if (problem === '') return nested;
  // Retries after removing obstacles: unreadable files and folders, and pipes in place of files.
  openUpSlotFolder(slot.tree);
  return (await stageSlot(git)).nested;
}

type Staged = { readonly nested: readonly string[]; readonly problem: string };

async function stageSlot(git: Git, signal?: AbortSignal): Promise<Staged> {
  const options = signal === undefined ? {} : { signal };
  const nested = await nestedRepositoriesInSlot(git, options);
  const { complaint } = await addAllSlotPaths(git, nested, options);
  return { nested, problem: complaint };
}

type StageOptions = Parameters<Git>[1];

function addAllSlotPaths(git: Git, nested: readonly string[], options: StageOptions): Promise<GitAnswer> {
  if (nested.length === 0) return git(['add', '--all'], options);
  const paths = ['.', ...nested.map((path) => `:(exclude,literal)${path}`)];
  const input = Buffer.from(paths.join('\0'), 'latin1');
  return git(['add', '--all', '--pathspec-from-file=-', '--pathspec-file-nul'], { ...options, input });
}

// Among untracked paths only a repository is listed as a folder, and the listing looks into none. There are no
// submodules: drover refuses a repository with submodules before the run.
async function nestedRepositoriesInSlot(git: Git, options: StageOptions): Promise<readonly string[]> {
  const list = ['ls-files', '-z', '--others', '--exclude-standard'];
  const { out } = await git(list, { ...options, encoding: 'latin1' });
  return out.split('\0').flatMap((path) => (path.endsWith('/') ? [path.slice(0, -1)] : []));
}

function openUpSlotFolder(top: string): void {
  const waiting = [Buffer.from(top)];
  for (let n = 0; n < ENTRIES_OPENED_MAX; n++) {
    const path = waiting.pop();
    if (path === undefined) return;
    try {
      const found = lstatSync(path);
      if (found.isDirectory()) {
        if ((found.mode & 0o700) !== 0o700) chmodSync(path, found.mode | 0o700);
        waiting.push(...slotFolderEntries(path).map(({ name }) => Buffer.concat([path, Buffer.from('/'), name])));
      } else if (found.isFile()) {
        if ((found.mode & 0o400) === 0) chmodSync(path, found.mode | 0o400);
      } else if (!found.isSymbolicLink()) unlinkSync(path);
    } catch (error) {
      // The folder is gone, or its path is too long: git reports what it can't add.
      if (!isErrorCode(error, 'ENOENT', 'ENAMETOOLONG', 'EACCES', 'EPERM')) throw error;
    }
  }
}

function slotFolderEntries(folder: Buffer): readonly Dirent<Buffer>[] {
  return readdirSync(folder, { withFileTypes: true, encoding: 'buffer' }).filter(
    ({ name }) => name.toString() !== '.git',
  );
}

type Drafted = Committing & { readonly draft: string }; // the index that has everything staged

type Sifted = Pick<Differences, 'touched'> & {
  readonly changes: readonly string[];
  readonly links: readonly string[];
};

/** Returns the worker's changes. Unstages paths that can't be committed or are not the worker's. */
async function siftSlotChanges(git: Git, given: Drafted): Promise<Sifted> {
  const { base, keepOut } = given;
  const own = keepOut.map((path) => Buffer.from(path).toString('latin1'));
  const isOwn = ({ path, before }: Change) =>
    before === ABSENT && (isLeftoverFile(path) || own.some((kept) => path === kept || path.startsWith(`${kept}/`)));
  const isUnwanted = (change: Change) => change.after === GITLINK || isOwn(change);
  const { changes, touched } = await slotChangesSinceBase(git, given);
  const unwanted = changes.filter(isUnwanted);
  if (unwanted.length === 0) return { changes: changes.map(({ path }) => path), touched, links: [] };
  const removals = unwanted.map(({ path }) => `0 ${'0'.repeat(base.length)}\t${path}\0`).join('');
  await git(['update-index', '-z', '--index-info'], { input: Buffer.from(removals, 'latin1') });
  // Unstaging a path can change others, so all changes are read again.
  const rest = await slotChangesSinceBase(git, given);
  const links = unwanted.filter(({ after }) => after === GITLINK).map(({ path }) => path);
  return { changes: rest.changes.map(({ path }) => path), touched: rest.touched, links };
}

/** Git is asked only if drover's index belongs to another commit. */
async function slotChangesSinceBase(git: Git, { slot, base, draft }: Drafted): Promise<Differences> {
  const known = slot.changesIn(draft, base);
  if (known !== undefined) return known;
  const compare = ['diff-index', '--cached', '--raw', '-z', '--no-renames', '--ignore-submodules=none', base];
  const fields = (await git(compare, { encoding: 'latin1' })).out.split('\0');
  const changes: Change[] = [];
  // Format: ":<old mode> <new mode> <old object> <new object> <status>", then the path.
  for (let n = 0; n + 1 < fields.length; n += 2) {
    const [before = '', after = ''] = (fields[n] ?? '').slice(1).split(' ');
    changes.push({ before, after, path: fields[n + 1] ?? '' });
  }
  return { changes, touched: undefined };
}
