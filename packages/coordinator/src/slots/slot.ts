// A slot: a checkout that is reused by many tasks. The next task costs what has changed, not the size of the tree.
//
//   <slots>/<n>.lock        held by the process that uses the slot, until that process ends
//   <slots>/<n>/tree/       the worker's tree; its `.git` is the worker's own
//               git/        drover's index of the tree, the commit of that index, and more ignore rules
//               owner.json  the attempt that owns the slot; while it is there, no other attempt takes the slot
//               box/        HOME and /tmp of the commands that run in it
//               prepared.json  what setup made in the tree, which later tasks find again
//               trash/      renamed folders, to be removed later
//               .git        invalid on purpose, so that git in a tree without `.git` finds no repository above
//
// Guarantees
//   1. The index has times only of files that drover wrote, so a file with the index's times, inode and size is
//      drover's.
//   2. A commit uses a copy of the index. sweep.ts removes what a worker left, and restore.ts writes missing files;
//      for another base, git does. If that fails, the tree is made anew.
//
// Crash: the owner is written last and removed first. With an owner, the tree is complete and belongs to that attempt.
// Without one, the tree may be in any state, and the index tells how to bring it to its next base.

import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DroverError } from '@drover/core/errors';
import { isJournalLocked, Lock } from '@drover/core/journal/file/lock';
import * as z from 'zod/mini';
import { gitAt, type Git, type GitAnswer } from '../git/git.ts';
import type { ObjectFormat } from '../git/repository.ts';
import type { Blobs } from '../store/blobs.ts';
import { type Change, gitIndexChangesBetween, gitIndexPathsTouched } from '../git/index-changes.ts';
import { EMPTY_INDEX, type IndexEntry, type IndexFile, readGitIndex } from '../git/index-file.ts';
import { isErrorCode, removeFolderTree, setFolderAside } from '../git/removal.ts';
import { modeOfRenewedFile } from './renewal/own-file.ts';
import { restoreSlotFiles } from './renewal/restore.ts';
import { PreparedTree, preparedSlotState, type SharedPaths, withoutPreparedPaths } from './renewal/prepared.ts';
import {
  forgetYoungInSweep,
  type KnownFolders,
  learnFoldersInSweep,
  type Sight,
  strayPathsInSlot,
  sweepSlot,
  type SweepOrder,
} from './renewal/sweep.ts';
import { type KeptIndex, SlotIndex } from './renewal/slot-index.ts';
import { bestEffort } from '@drover/core/promises';

const PERMISSIONS = 0o7777;
// How long a commit's status scan stays valid. A later task scans again.
const SIGHT_MS_MAX = 1_000;

const OWNER = z.object({
  run: z.string(),
  task: z.string(),
  attempt: z.number(),
  worker: z.number(),
  base: z.string(),
  /** Copied into the tree, and never committed. */
  included: z.readonly(z.array(z.string())),
});

export type Owner = Readonly<z.infer<typeof OWNER>>;

/** Files that git does not ignore, and whether the tree holds the whole output of setup. */
export type SetUp = { readonly made: readonly string[]; readonly isWhole: boolean };

export type Differences = {
  readonly changes: readonly Change[];
  /** Paths of drover's index that look different to git, even with the same content; undefined if unknown. */
  readonly touched: ReadonlySet<string> | undefined;
};

export type SlotOptions = {
  readonly slotsFolder: string;
  readonly storeGit: string;
  readonly objectFormat: ObjectFormat;
  readonly blobs: Blobs; // git folder of the store
  readonly env: Readonly<Record<string, string>>;
};

export class Slot {
  readonly number: number;
  readonly folder: string;
  readonly tree: string;
  readonly index: string;
  readonly exclude: string;
  /** The mode of folders that drover makes here, by the user's umask. */
  readonly folderMode: number;
  readonly #options: SlotOptions;
  readonly #lock: Lock;
  // The commit of the tree, as long as only drover has used it.
  #at: string | undefined;
  readonly #index: SlotIndex;
  readonly #folders: KnownFolders = new Map();
  readonly #prepared: PreparedTree;
  #aloneUntilMs: number | undefined; // end of the time in which only drover used the tree, see Sight
  #sight: (Sight & { readonly sinceMs: number }) | undefined;

  private constructor(options: SlotOptions, number: number, lock: Lock) {
    this.number = number;
    this.folder = slotFolder(options.slotsFolder, number);
    this.tree = join(this.folder, 'tree');
    const own = join(this.folder, 'git');
    this.folderMode = lstatSync(own).mode & PERMISSIONS;
    this.#index = new SlotIndex(own, options.objectFormat, modeOfRenewedFile(this.folderMode));
    this.index = this.#index.path;
    this.exclude = join(own, 'exclude');
    this.#prepared = new PreparedTree(this.folder, this.tree);
    this.#options = options;
    this.#lock = lock;
  }

  /** Returns the slot, or undefined if another process has it or `mayFollow` rejects its owner. */
  static claim(
    options: SlotOptions,
    number: number,
    mayFollow: (owner: Owner | undefined) => boolean,
  ): Slot | undefined {
    const folder = slotFolder(options.slotsFolder, number);
    const lockPath = slotLock(options.slotsFolder, number);
    if (isJournalLocked(lockPath) || !mayFollow(ownerOfSlot(folder))) return undefined;
    const lock = Lock.take(lockPath);
    if (lock === undefined) return undefined;
    // Another process may have used it in between.
    if (!mayFollow(ownerOfSlot(folder))) {
      lock.release();
      return undefined;
    }
    mkdirSync(join(folder, 'git'), { recursive: true });
    writeFileSync(join(folder, '.git'), 'gitdir: nowhere\n');
    return new Slot(options, number, lock);
  }

  get owner(): Owner | undefined {
    return ownerOfSlot(this.folder);
  }

  isAt(base: string): boolean {
    return this.#at === base;
  }

  /** Brings the tree to a commit. Only the output of setup for the same key stays beside it. */
  async goTo(base: string, signal: AbortSignal, key?: string): Promise<void> {
    if (this.isAt(base)) return;
    this.disown();
    const problem = await this.#move(base, signal, key);
    if (problem !== undefined) await this.#makeAnew(base, signal);
    this.#at = base;
  }

  /** Files that setup made for this key and git does not ignore; undefined if setup has to run. */
  madeFor(key: string | undefined): readonly string[] | undefined {
    return this.#prepared.madeFor(key);
  }

  /** Keeps the output of setup for later tasks with this key, unless it reports that they need more than the tree. */
  async prepare(
    key: string,
    { folders, linked }: SharedPaths,
    setUp: () => Promise<SetUp>,
  ): Promise<readonly string[]> {
    this.#prepared.forget();
    const before = withoutPreparedPaths(await this.#strays(), folders);
    const state = await preparedSlotState(this.tree, before);
    const { made, isWhole } = await setUp();
    const after = await this.#strays();
    if (isWhole) await this.#prepared.note({ key, made }, { before, after, state, linked });
    return made;
  }

  async #strays(): Promise<readonly string[]> {
    const kept = this.#index.read();
    return kept === undefined ? [] : strayPathsInSlot(this.#sweepOrder(kept));
  }

  /** Learns the tree while no task waits, so that the next sweep reads less. */
  async getToKnow(): Promise<void> {
    const kept = this.#at === undefined ? undefined : this.#index.read();
    if (kept !== undefined) await learnFoldersInSweep(this.#sweepOrder(kept));
  }

  /** Reserves the slot for this attempt, even over a crash. */
  handOver(owner: Owner): void {
    this.#at = undefined;
    const draft = `${this.#ownerPath}.new`;
    writeFileSync(draft, `${JSON.stringify(owner)}\n`);
    renameSync(draft, this.#ownerPath);
  }

  /** Gives up the slot. Its content is no longer needed. */
  disown(): void {
    this.#at = undefined;
    rmSync(this.#ownerPath, { force: true });
  }

  /** The last moment at which drover alone had the tree; see SlotIndex. */
  settleTimes(): void {
    if (this.#at === undefined) return;
    this.#aloneUntilMs = Date.now();
    this.#index.settleTimes();
    forgetYoungInSweep(this.#folders);
  }

  /** Returns true if the tree is a real folder in its place. A worker could have put a link there. */
  hasTree(): boolean {
    const found = lstatSync(this.tree, { throwIfNoEntry: false });
    return found?.isDirectory() === true && realpathSync.native(this.tree) === this.tree;
  }

  git(index: string): Git {
    const { storeGit, env } = this.#options;
    const settings = { 'core.excludesFile': this.exclude };
    return gitAt({ gitDir: storeGit, workTree: this.tree, indexFile: index, settings, env });
  }

  /** Returns true if drover's own index is unchanged and belongs to this commit. */
  hasIndexOf(base: string): boolean {
    return this.#index.read()?.base === base;
  }

  /** Differences between another index and drover's own; undefined if drover's index belongs to another commit. */
  changesIn(index: string, base: string): Differences | undefined {
    const { objectFormat: format } = this.#options;
    const kept = this.#index.read();
    const other = readGitIndex(readFileSync(index), format);
    if (kept === undefined || kept.base !== base || other === undefined) return undefined;
    return {
      changes: gitIndexChangesBetween(kept.index, other, format),
      touched: gitIndexPathsTouched(kept.index, other, format),
    };
  }

  /** Stores the file states that git has just read. No worker may use the tree after this. */
  see({ touched }: Pick<Differences, 'touched'>): void {
    const aloneUntilMs = this.#aloneUntilMs;
    const isKnown = touched !== undefined && aloneUntilMs !== undefined;
    this.#sight = isKnown ? { touched, aloneUntilMs, sinceMs: performance.now() } : undefined;
  }

  /** Forgets the stored file states, because the tree was used again. */
  unsee(): void {
    this.#sight = undefined;
  }

  /** The folder for private files of an attempt's commands. */
  get box(): string {
    return join(this.folder, 'box');
  }

  /** Sets aside the private files of the previous attempt, which the next one must not find. */
  clearBox(): void {
    if (lstatSync(this.box, { throwIfNoEntry: false }) !== undefined) setFolderAside(this.box, this.#trash());
  }

  /** Removes what was set aside. A failed removal is repeated later. */
  async emptyTrash(): Promise<void> {
    const trash = this.#trash();
    for (const name of await readdir(trash).catch(() => [])) {
      await bestEffort(removeFolderTree(join(trash, name)));
    }
  }

  unlock(): void {
    this.#lock.release();
  }

  get #ownerPath(): string {
    return join(this.folder, 'owner.json');
  }

  // A worker could have put a link there, whose target drover must neither fill nor empty.
  #trash(): string {
    const path = join(this.folder, 'trash');
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === false) rmSync(path, { force: true });
    return path;
  }

  // The reason why the tree cannot be proven clean, if there is one.
  async #move(base: string, signal: AbortSignal, key?: string): Promise<DroverError | undefined> {
    const unclean = (message: string) => new DroverError({ kind: 'workspace.failed', message });
    if (!this.hasTree()) {
      // A link or a file is removed; a real folder other than the expected one stays.
      await bestEffort(unlink(this.tree));
      this.#index.remove();
      mkdirSync(this.tree, { recursive: true });
      if (!this.hasTree()) return unclean(`${this.folder} is not where it should be`);
    }
    const kept = this.#index.read();
    if (kept === undefined) return unclean('the index is damaged');
    const missing = await this.#sweep(kept, await this.#prepared.keep(key, this.#trash()));
    if (missing === undefined) return unclean('something in the workspace could not be removed');
    try {
      const isThere = kept.base === base;
      const { complaint } = isThere
        ? await this.#restore(kept.index, missing, signal)
        : await this.#readTree(base, signal);
      // Git reports files that it can't remove and continues. Without an earlier index it reports something else.
      if (complaint !== '' && kept.index !== EMPTY_INDEX) return unclean(complaint);
      if (!isThere || missing.length > 0) this.#index.note(base);
      return undefined;
    } catch (error) {
      if (error instanceof DroverError && !signal.aborted) return error;
      throw error;
    }
  }

  #readTree(base: string, signal: AbortSignal): Promise<GitAnswer> {
    this.#index.expectChange();
    return this.git(this.index)(['read-tree', '--reset', '-u', base], { signal });
  }

  async #restore(
    index: IndexFile,
    missing: readonly IndexEntry[],
    signal: AbortSignal,
  ): Promise<{ readonly complaint: string }> {
    const { objectFormat: format, blobs } = this.#options;
    if (missing.length === 0) return { complaint: '' };
    const restored = await restoreSlotFiles({ top: this.tree, index, format, missing, blobs });
    this.#index.expectChange();
    if (restored !== undefined) {
      this.#index.write(restored);
      return { complaint: '' };
    }
    const input = Buffer.from(missing.map(({ path }) => `${path}\0`).join(''), 'latin1');
    return this.git(this.index)(['checkout-index', '--force', '--index', '-z', '--stdin'], { input, signal });
  }

  // Valid once: the next step changes the tree.
  #takeSight(): Sight | undefined {
    const sight = this.#sight;
    this.#sight = undefined;
    return sight !== undefined && performance.now() - sight.sinceMs <= SIGHT_MS_MAX ? sight : undefined;
  }

  #sweepOrder({ index, writtenMs: indexMs }: KeptIndex): SweepOrder {
    const { objectFormat: format } = this.#options;
    const { tree: top, folderMode: mode } = this;
    return { top, index, format, indexMs, folders: this.#folders, mode, trash: this.#trash() };
  }

  async #sweep(kept: KeptIndex, prepared: ReadonlySet<string>): Promise<readonly IndexEntry[] | undefined> {
    try {
      const sight = this.#takeSight();
      return await sweepSlot({ ...this.#sweepOrder(kept), kept: prepared, ...(sight !== undefined && { sight }) });
    } catch (error) {
      if (error instanceof Error && 'code' in error) return undefined;
      throw error;
    }
  }

  async #makeAnew(base: string, signal: AbortSignal): Promise<void> {
    this.#index.remove();
    this.#prepared.forget();
    if (this.hasTree() && !setFolderAside(this.tree, this.#trash())) {
      const message = `${this.tree} can't be removed: remove it by hand`;
      throw new DroverError({ kind: 'workspace.failed', message });
    }
    const problem = await this.#move(base, signal);
    if (problem !== undefined) throw problem;
  }
}

/** The numbers of existing slots. */
export function slotNumbers(slotsFolder: string): readonly number[] {
  return readdirSync(slotsFolder)
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

export function slotFolder(slotsFolder: string, number: number): string {
  return join(slotsFolder, `${number}`);
}

export function slotLock(slotsFolder: string, number: number): string {
  return join(slotsFolder, `${number}.lock`);
}

export function ownerOfSlot(folder: string): Owner | undefined {
  try {
    return OWNER.parse(JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8')));
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    if (error instanceof SyntaxError || error instanceof z.core.$ZodError) return UNKNOWN;
    throw error;
  }
}

// An unreadable owner still owns the slot.
const UNKNOWN: Owner = { run: 'an unknown run', task: '?', attempt: 0, worker: 0, base: '', included: [] };
