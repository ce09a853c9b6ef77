// Everything that drover keeps of one run beside its journal, what of it exists nowhere else, and its removal.
//
// Guarantees
//   1. A branch goes only if it is where drover left it. A branch that the user moved, or works on, stays.
//   2. Removal can be repeated after a crash at any point: what is gone already is skipped.

import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isJournalLocked } from '@drover/core/journal/file/lock';
import * as z from 'zod/mini';
import { type Git, gitAt } from '../git/git.ts';
import { isErrorCode } from '../git/removal.ts';
import { ownerOfSlot, slotFolder, slotLock } from '../slots/slot.ts';
import { REPOSITORY_FILE, SLOTS_FOLDER, STORE_FOLDER, storeTextOf, workspacesFolder } from '../store/store.ts';
import { removeGarbageSlot } from './garbage.ts';

export type RunTraces = {
  readonly home: string;
  readonly run: string;
  readonly repository: string; // the repository's top folder
  readonly env: Readonly<Record<string, string>>;
  /** The commits that drover made for its tasks. */
  readonly commits: ReadonlySet<string>;
};

type Ref = { readonly ref: string; readonly commit: string };
type OwnSlot = {
  readonly number: number;
  readonly task: string;
  readonly hasChanges: boolean;
  readonly isTaken: boolean;
};

export type RunRemains = {
  readonly folder: string; // the folder with the store and the slots
  readonly commonDir: string;
  readonly isGone: boolean; // the user's repository
  readonly slots: readonly OwnSlot[];
  readonly storeBranches: readonly Ref[];
  readonly userBranches: readonly Ref[]; // branches that are removed with the run
  readonly stayingBranches: readonly string[];
};

const REPOSITORY = z.object({ top: z.string(), commonDir: z.string() });

/** Returns undefined if drover stores nothing for the run's repository. */
export async function findRunRemains(traces: RunTraces): Promise<RunRemains | undefined> {
  const { run, env, commits } = traces;
  const place = await placeOfRemains(traces);
  if (place === undefined) return undefined;
  const { folder, commonDir } = place;
  const gitDir = join(folder, STORE_FOLDER);
  const prefix = `refs/heads/drover/${run}/`;
  const isGone = !existsSync(commonDir);
  const storeBranches = existsSync(gitDir) ? await refsOfRemains(gitAt({ gitDir, env }), prefix) : [];
  const own = new Set([...commits, ...storeBranches.map(({ commit }) => commit)]);
  const found = isGone ? [] : await refsOfRemains(gitAt({ gitDir: commonDir, env }), prefix);
  return {
    ...place,
    isGone,
    slots: await slotsOfRemains(folder, traces),
    storeBranches,
    userBranches: found.filter(({ commit }) => own.has(commit)),
    stayingBranches: found.flatMap(({ ref, commit }) => (own.has(commit) ? [] : [ref.replace('refs/heads/', '')])),
  };
}

async function placeOfRemains(
  traces: RunTraces,
): Promise<{ readonly folder: string; readonly commonDir: string } | undefined> {
  const root = workspacesFolder(traces.home);
  for (const key of await namesOfRemains(root)) {
    const folder = join(root, key);
    const known = REPOSITORY.safeParse(JSON.parse((await storeTextOf(join(folder, REPOSITORY_FILE))) ?? 'null'));
    if (known.success && known.data.top === traces.repository) return { folder, commonDir: known.data.commonDir };
  }
  return undefined;
}

async function slotsOfRemains(folder: string, { run, env }: RunTraces): Promise<readonly OwnSlot[]> {
  const slotsFolder = join(folder, SLOTS_FOLDER);
  const found: OwnSlot[] = [];
  for (const name of await namesOfRemains(slotsFolder)) {
    if (!/^\d+$/.test(name)) continue;
    const number = Number(name);
    const own = slotFolder(slotsFolder, number);
    const owner = ownerOfSlot(own);
    if (owner?.run !== run) continue;
    const hasChanges = await isRemainingSlotChanged(join(folder, STORE_FOLDER), own, env);
    found.push({ number, task: owner.task, hasChanges, isTaken: isJournalLocked(slotLock(slotsFolder, number)) });
  }
  return found;
}

/** Returns true if a workspace differs from its base. */
async function isRemainingSlotChanged(gitDir: string, slot: string, env: RunTraces['env']): Promise<boolean> {
  if (!existsSync(join(slot, 'tree'))) return false;
  const settings = { 'core.excludesFile': join(slot, 'git', 'exclude') };
  const place = { gitDir, workTree: join(slot, 'tree'), indexFile: join(slot, 'git', 'index'), settings, env };
  const args = ['ls-files', '-z', '--modified', '--deleted', '--others', '--exclude-standard'];
  return (await gitAt(place)(args)).out !== '';
}

/** Returns true if a ref of the user that stays, such as a branch or tag, contains the commit. */
export async function isRemainKeptElsewhere(
  remains: RunRemains,
  commit: string,
  env: RunTraces['env'],
): Promise<boolean> {
  if (remains.isGone) return false;
  const git = gitAt({ gitDir: remains.commonDir, env });
  const going = new Set(remains.userBranches.map(({ ref }) => ref));
  // git fails for a commit that the repository lacks.
  const { code, out } = await git(['for-each-ref', '--format=%(refname)', '--contains', commit], {
    accept: [128, 129],
  });
  return code === 0 && out.split('\n').some((ref) => ref !== '' && !going.has(ref));
}

/** Removes the branches. Returns those that stay, because they are checked out. */
export async function removeRunRemains(remains: RunRemains, env: RunTraces['env']): Promise<readonly string[]> {
  const { folder, commonDir, isGone } = remains;
  for (const { number } of remains.slots) await removeGarbageSlot(join(folder, SLOTS_FOLDER), number);
  const stayed: string[] = [];
  const user = gitAt({ gitDir: commonDir, env });
  for (const { ref, commit } of isGone ? [] : remains.userBranches) {
    const name = ref.replace('refs/heads/', '');
    const now = (await user(['rev-parse', '--verify', '--quiet', ref], { accept: [1] })).out.trim();
    if (now !== commit) continue;
    // Git itself refuses if the branch is checked out in any worktree.
    if ((await user(['branch', '--quiet', '-D', '--', name], { accept: [1] })).code !== 0) stayed.push(name);
  }
  const store = gitAt({ gitDir: join(folder, STORE_FOLDER), env });
  for (const { ref, commit } of remains.storeBranches) await store(['update-ref', '-d', ref, commit]);
  return stayed;
}

async function refsOfRemains(git: Git, prefix: string): Promise<readonly Ref[]> {
  const { out } = await git(['for-each-ref', '--format=%(objectname) %(refname)', prefix]);
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => ({ commit: line.slice(0, line.indexOf(' ')), ref: line.slice(line.indexOf(' ') + 1) }));
}

async function namesOfRemains(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  });
}
