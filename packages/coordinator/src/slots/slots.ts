// The workspaces of a run: slots, taken from those that earlier runs have left or made as needed, moved
// from task to task, and kept for the next run.
//
// Two runs on one repository use different slots: the operating system holds a lock on each for as long as its process
// lives. A slot that holds an attempt of a run that has not come to its end stays that run's, also
// when the process is gone: `again` gives it back with its files as they were.

import { DroverError } from '@drover/core/errors';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunTask } from '@drover/core/task/task';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { gitObjectFolders, type Repository } from '../git/repository.ts';
import { Blobs } from '../store/blobs.ts';
import type { Contain, Contained } from './containment.ts';
import { type CommitOrder, type Committed, commitSlotTree } from './commit.ts';
import {
  includeAsIgnored,
  findSlotIncludes,
  type IncludeLine,
  type Inclusion,
  placeIncludes,
  slotInclusionWarnings,
  readSlotInclude,
  readWorktreeInclude,
} from './include.ts';
import { type Dependencies, mountDependencies } from '../dependencies/bring.ts';
import { LinkedDependencies } from '../dependencies/linked.ts';
import { modeOfRenewedFile, writeRenewedFile } from './renewal/own-file.ts';
import { isSlotHomeUnused, slotPreparationKey, setUpSlot } from './setup.ts';
import { type Owner, Slot, slotNumbers, type SlotOptions } from './slot.ts';
import { openStore, type Store, storeTextOf } from '../store/store.ts';
import { renewWorkerGit } from './renewal/worker-git.ts';
import { bestEffort, handled } from '@drover/core/promises';

const SLOTS_MAX = 256;
const CHANGED_MAX = 20; // maximum number of reported paths
const TRASH_MS_AFTER = 300; // delay before removed folders are deleted
const TRASH_MS_MAX = 2_000; // longest wait of a close for deletions

export type Workspace = {
  readonly path: string;
  readonly base: string;
  /** The sandbox of the commands that run in it. */
  readonly sandbox: SandboxPolicy | undefined;
  /** The workspace is on a host, and only that host can work in it. */
  readonly host?: { readonly name: () => string; readonly run: RunTask };
  /** Returns undefined if nothing was changed. Idempotent. */
  readonly commit: (order: CommitOrder) => Promise<Committed | undefined>;
  /** Returns the slot to the pool. Idempotent. With 'commit': the tree was not touched since its commit. */
  readonly release: (since?: 'commit') => Promise<void>;
};

export type SlotsOptions = {
  readonly home: string;
  readonly repository: Repository;
  readonly run: string;
  readonly env: Readonly<Record<string, string>>;
  /** Commands that prepare a workspace, and the folder for their output. */
  readonly setup?: { readonly commands: readonly string[]; readonly outputFolder: string };
  readonly contain?: Contain;
  /** Installed dependencies of the checkout that every workspace gets. */
  readonly dependencies?: Dependencies;
};

export type Wish = {
  readonly worker: number;
  readonly task: string;
  readonly attempt: number;
  readonly base: string;
  readonly signal: AbortSignal;
  /** Labels that a host must have. */
  readonly runsOn?: readonly string[];
};

/** Gives attempts their workspaces, on this machine or on others. */
export type Workspaces = {
  readonly take: (wish: Wish) => Promise<Workspace>;
  readonly again: (wish: Wish) => Promise<Workspace | undefined>;
};

export class Slots {
  readonly store: Store;
  readonly #options: SlotsOptions;
  readonly #slotOptions: SlotOptions;
  readonly #blobs: Blobs;
  readonly #lines: readonly IncludeLine[];
  readonly #held = new Map<number, Slot>();
  readonly #closing = new AbortController();
  readonly #removing = new Set<Promise<void>>();
  readonly #withTrash = new Set<Slot>();
  readonly #contained = new Set<Contained>();
  #emptying: NodeJS.Timeout | undefined;
  #idle: Slot[] = [];
  #coming: Promise<Slot>[] = [];
  #inclusion: Promise<Inclusion> | undefined;
  #objects: Promise<readonly string[]> | undefined;
  #userExcludes: Promise<string> | undefined;
  readonly #shared: LinkedDependencies | undefined;
  readonly #keys = new Map<string, Promise<string | undefined>>();

  private constructor(options: SlotsOptions, store: Store, lines: readonly IncludeLine[]) {
    this.#options = options;
    this.store = store;
    this.#lines = lines;
    const { repository, env, dependencies } = options;
    const { objectFormat, top } = repository;
    this.#blobs = new Blobs({ gitDir: store.gitDir, env });
    const { slotsFolder, gitDir: storeGit, folder } = store;
    if (dependencies?.how === 'link')
      this.#shared = new LinkedDependencies(dependencies.folders, { top, store: folder });
    this.#slotOptions = { slotsFolder, storeGit, objectFormat, blobs: this.#blobs, env };
  }

  /** Throws UsageError if home or `.drover/include` is unusable. */
  static async open(options: SlotsOptions): Promise<Slots> {
    const store = await openStore(options);
    const lines = [...(await readSlotInclude(options.repository.top)), ...(await readWorktreeInclude(options))];
    return new Slots(options, store, lines);
  }

  /** Starts bringing that many slots to the repository's HEAD, in the background. */
  prepare(count: number): void {
    const missing = count - this.#idle.length - this.#coming.length;
    const slots = Array.from({ length: Math.max(0, missing) }, () => this.#claim());
    const ready: Promise<Slot>[] = [];
    // As many at once as there are processors: each slot waits for the one that many places before it.
    for (const slot of slots) ready.push(this.#bring(slot, ready[ready.length - availableParallelism()]));
    this.#coming.push(...ready);
    handled(this.inclusion());
  }

  /** Returns a clean workspace on that commit. */
  async take(wish: Wish): Promise<Workspace> {
    const { base, signal } = wish;
    const slot = await this.#find(wish);
    try {
      if (signal.aborted) throw new DroverError(turnFailureOfSignal(signal));
      await slot.goTo(base, signal, await this.#keyAt(base));
      slot.settleTimes();
      return await this.#furnish(slot, wish);
    } catch (error) {
      slot.disown();
      this.#idle.push(slot);
      throw error;
    } finally {
      this.#emptyTrashLater(slot);
    }
  }

  /** Returns the unchanged workspace of an attempt that an earlier process began; undefined if there is none. */
  async again({ task, attempt }: Pick<Wish, 'task' | 'attempt'>): Promise<Workspace | undefined> {
    const isIt = (owner: Owner | undefined): boolean =>
      owner?.run === this.#options.run && owner.task === task && owner.attempt === attempt;
    for (const number of slotNumbers(this.store.slotsFolder)) {
      if (this.#held.has(number)) continue;
      const slot = Slot.claim(this.#slotOptions, number, isIt);
      if (slot === undefined) continue;
      this.#held.set(number, slot);
      const { owner } = slot;
      if (owner !== undefined && slot.hasTree() && (await this.#hasCommit(owner.base))) {
        return this.#workspace(slot, owner, await this.#contain(slot, owner));
      }
      slot.disown();
      this.#idle.push(slot);
    }
    return undefined;
  }

  /** Takes back slots that an earlier process of this run held for attempts whose work is stored elsewhere. */
  reclaim(isKept: (attempt: Pick<Wish, 'task' | 'attempt'>) => boolean): void {
    const isLeft = (owner: Owner | undefined): boolean => owner?.run === this.#options.run && isKept(owner);
    for (const number of slotNumbers(this.store.slotsFolder)) {
      const slot = this.#held.has(number) ? undefined : Slot.claim(this.#slotOptions, number, isLeft);
      if (slot === undefined) continue;
      slot.disown();
      this.#held.set(number, slot);
      this.#idle.push(slot);
    }
  }

  /** The files that `.drover/include` includes, and its entries without effect. */
  inclusion(): Promise<Inclusion> {
    this.#inclusion ??= findSlotIncludes(this.#lines, this.#options);
    return this.#inclusion;
  }

  /** Throws DroverError if a worker changed dependencies that workspaces share. The next run makes a new copy. */
  async auditDependencies(): Promise<void> {
    const paths = (await this.#shared?.audit()) ?? [];
    if (paths.length === 0) return;
    await this.#shared?.removeCopy();
    throw new DroverError({ kind: 'dependencies.changed', paths: paths.slice(0, CHANGED_MAX) });
  }

  /** Warnings for the user about copied files. */
  async warnings(): Promise<readonly string[]> {
    return slotInclusionWarnings(await this.inclusion());
  }

  /** Gives up all slots. Unreleased ones still belong to this run. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#coming);
    await this.#blobs.close();
    await Promise.all([...this.#contained].map((each) => this.#uncontain(each)));
    this.#emptyTrash();
    await Promise.race([Promise.all(this.#removing), delay(TRASH_MS_MAX, undefined, { ref: false })]);
    for (const slot of this.#held.values()) slot.unlock();
    this.#held.clear();
    this.#idle = [];
    this.#coming = [];
  }

  async #bring(slot: Slot, before: Promise<Slot> | undefined): Promise<Slot> {
    await before;
    // A failure here is repeated and reported when a task takes the slot.
    const { head } = this.#options.repository;
    const bring = async () => {
      await slot.goTo(head, this.#closing.signal, await this.#keyAt(head));
      await slot.getToKnow();
      await this.#shared?.link(slot.tree, this.#closing.signal);
    };
    await bestEffort(
      bring().catch((error: unknown) => {
        // Some links may be missing.
        slot.disown();
        throw error;
      }),
    );
    return slot;
  }

  async #find(wish: Wish): Promise<Slot> {
    const at = this.#idle.findIndex((slot) => slot.isAt(wish.base));
    const [idle] = this.#idle.splice(Math.max(0, at), 1);
    return idle ?? (await this.#coming.shift()) ?? this.#claim(wish);
  }

  // Returns a free slot, or one that an earlier attempt at the same task left.
  #claim(wish?: Wish): Slot {
    const { run } = this.#options;
    const mayFollow = (owner: Owner | undefined): boolean =>
      owner === undefined || (owner.run === run && owner.task === wish?.task && owner.attempt <= wish.attempt);
    for (let number = 1; number <= SLOTS_MAX; number++) {
      if (this.#held.has(number)) continue;
      const slot = Slot.claim(this.#slotOptions, number, mayFollow);
      if (slot === undefined) continue;
      this.#held.set(number, slot);
      return slot;
    }
    const message = `all ${SLOTS_MAX} workspaces of this repository are in use: see drover gc`;
    throw new DroverError({ kind: 'workspace.failed', message });
  }

  async #furnish(slot: Slot, wish: Wish): Promise<Workspace> {
    const { worker, task, attempt, base, signal } = wish;
    const { repository, run } = this.#options;
    const { included } = await this.inclusion();
    this.#userExcludes ??= this.#readUserExcludes();
    const exclude = `${includeAsIgnored(included)}${await this.#userExcludes}`;
    const { tree, index, folderMode: mode } = slot;
    writeRenewedFile(slot.exclude, exclude, modeOfRenewedFile(mode));
    await placeIncludes(included, repository.top, slot.tree);
    await this.#shared?.link(tree, signal);
    const branch = `drover/${run}/${task}`;
    renewWorkerGit({ tree, index, storeGit: this.store.gitDir, repository, base, branch, exclude, mode });
    slot.clearBox();
    const contained = await this.#contain(slot, wish);
    try {
      const made = await this.#setUp(slot, { base, sandbox: contained?.policy }, signal);
      const owner = { run, task, attempt, worker, base, included: [...included.map(({ path }) => path), ...made] };
      slot.handOver(owner);
      return this.#workspace(slot, owner, contained);
    } catch (error) {
      await this.#uncontain(contained);
      throw error;
    }
  }

  /** Runs the setup commands, unless the slot has their output already. Returns files to keep out of commits. */
  async #setUp(
    slot: Slot,
    { base, sandbox }: { readonly base: string; readonly sandbox: SandboxPolicy | undefined },
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const { setup, env } = this.#options;
    const key = await this.#keyAt(base);
    if (key === undefined) return [];
    const kept = slot.madeFor(key);
    if (kept !== undefined) return kept;
    const shared = { folders: this.#shared?.folders ?? [], linked: this.#shared?.linkedIn(slot.tree) };
    const place = { cwd: slot.tree, env, outputFolder: setup?.outputFolder ?? '', git: slot.git(slot.index), sandbox };
    return slot.prepare(key, shared, async () => ({
      made: await setUpSlot(setup?.commands ?? [], place, signal),
      isWhole: isSlotHomeUnused(slot.box),
    }));
  }

  /** Undefined if workspaces need no preparation. */
  #keyAt(base: string): Promise<string | undefined> {
    const known = this.#keys.get(base);
    if (known !== undefined) return known;
    const made = this.#key(base);
    this.#keys.set(base, made);
    handled(made);
    return made;
  }

  async #key(base: string): Promise<string | undefined> {
    const { setup, env } = this.#options;
    const commands = setup?.commands ?? [];
    const copy = await this.#shared?.identity();
    if (commands.length === 0 && copy === undefined) return undefined;
    return slotPreparationKey({ commands, copy, path: env['PATH'] }, base, this.store.git);
  }

  async #contain(
    slot: Slot,
    { worker, task, attempt }: Pick<Owner, 'worker' | 'task' | 'attempt'>,
  ): Promise<Contained | undefined> {
    const { contain, repository } = this.#options;
    if (contain === undefined) return undefined;
    this.#objects ??= gitObjectFolders(join(this.store.gitDir, 'objects'));
    const { included } = await this.inclusion();
    const linked = included.filter(({ how }) => how === 'link').map(({ path }) => join(repository.top, path));
    const readable = [...(await this.#objects), ...linked];
    const { dependencies } = this.#options;
    const folders = dependencies?.how === 'mount' ? dependencies.folders : [];
    const brought = mountDependencies(folders, { top: repository.top, tree: slot.tree, box: slot.box });
    const contained = await contain({ root: slot.tree, folder: slot.box, readable, brought, worker, task, attempt });
    this.#contained.add(contained);
    return contained;
  }

  async #uncontain(contained: Contained | undefined): Promise<void> {
    if (contained === undefined || !this.#contained.delete(contained)) return;
    await contained.close();
  }

  // The user's own ignore rules apply to workers, too.
  async #readUserExcludes(): Promise<string> {
    const { commonDir, excludesFile } = this.#options.repository;
    const own = [join(commonDir, 'info', 'exclude'), ...(excludesFile === undefined ? [] : [excludesFile])];
    return (await Promise.all(own.map(async (path) => (await storeTextOf(path)) ?? ''))).join('\n');
  }

  #workspace(slot: Slot, { base, included }: Owner, contained: Contained | undefined): Workspace {
    const { identity } = this.#options.repository;
    let isReleased = false;
    return {
      path: slot.tree,
      base,
      sandbox: contained?.policy,
      commit: (order) => commitSlotTree({ ...order, slot, base, identity, keepOut: included, store: this.store }),
      release: async (since) => {
        if (isReleased) return;
        isReleased = true;
        await this.#uncontain(contained);
        slot.clearBox();
        this.#emptyTrashLater(slot);
        if (since === undefined) slot.unsee();
        slot.disown();
        if (this.#held.has(slot.number)) this.#idle.push(slot);
      },
    };
  }

  async #hasCommit(commit: string): Promise<boolean> {
    return (await this.store.git(['cat-file', '-e', `${commit}^{commit}`], { accept: [1, 128] })).code === 0;
  }

  // Deferred, because a task is waiting for a workspace.
  #emptyTrashLater(slot: Slot): void {
    this.#withTrash.add(slot);
    this.#emptying ??= setTimeout(() => this.#emptyTrash(), TRASH_MS_AFTER).unref();
  }

  #emptyTrash(): void {
    clearTimeout(this.#emptying);
    this.#emptying = undefined;
    for (const slot of this.#withTrash) {
      const removing = slot.emptyTrash().finally(() => this.#removing.delete(removing));
      this.#removing.add(removing);
    }
    this.#withTrash.clear();
  }
}
