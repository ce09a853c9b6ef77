// Delivery: how the user gets what has landed.
//
//   branch  the user's repository gets the branch, and one for each task that did not land but has work.
//   merge   the user's branch, index and files move to it; only if they are as they were when the run began.
//   patch   files beside the repository, which isn't written at all.
//
// Doing it twice is harmless, so a run that was interrupted in it does it again. Nothing is ever deleted
// or overwritten: where the branch with what has landed holds something else, it fails, and the store keeps
// all; a task that failed, was tried again and failed once more has a second branch.

import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { DroverError, UsageError } from '@drover/core/errors';
import type { Delivered, Delivery } from '@drover/protocol/run';
import { type Git, gitAt } from '../git/git.ts';
import { type OwnCheckout, fastForwardOwnCheckout, mergeObstacle } from './own-checkout.ts';
import { writeResultPatches } from './patches.ts';

const COMMIT_CHARS = 8;

type KeptWork = { readonly task: string; readonly commit: string };

export type DeliveryOrder = OwnCheckout & {
  readonly store: string; // its git folder
  readonly run: string;
  readonly merged: string; // the base if nothing has landed
  readonly kept: readonly KeptWork[]; // branches of tasks that did not land
  readonly deliver: Delivery;
  readonly resultBranch?: string; // default: drover/<run>/merged, as older versions named it
  readonly patchFolder: string;
  /** The user asked for this form alone: an obstacle is a UsageError, and nothing is changed. */
  readonly isStrict?: true;
};

export async function deliverResult(order: DeliveryOrder, signal: AbortSignal): Promise<Delivered> {
  if (signal.aborted) throw new DroverError(turnFailureOfSignal(signal));
  switch (order.deliver) {
    case 'branch':
      return deliverResultBranch(order);
    case 'merge':
      return deliverByMerge(order, signal);
    case 'patch':
      return deliverAsPatches(order);
  }
}

async function deliverResultBranch(order: DeliveryOrder): Promise<Delivered> {
  const { repository, env, store, run, base, merged, kept } = order;
  const branch = order.resultBranch ?? `drover/${run}/merged`;
  const git = gitAt({ gitDir: repository.gitDir, env });
  const hasLanded = merged !== base;
  const there = await listUserBranches(git, branch);
  if (order.isStrict === true && hasLanded) await refuseBranchOfOtherWork(order, branch, there.get(branch));
  const { branches, names } = branchesForUnlandedWork(run, kept, there);
  await fetchResultBranches(git, store, {
    branches: hasLanded ? [{ branch, commit: merged }, ...branches] : branches,
    there,
  });
  return { deliver: 'branch', commit: merged, ...(hasLanded && { branch, next: `git merge ${branch}` }), ...names };
}

async function deliverByMerge(order: DeliveryOrder, signal: AbortSignal): Promise<Delivered> {
  const { repository, env, store, run, merged, kept } = order;
  const git = gitAt({ gitDir: repository.gitDir, env });
  const isThere = await branchHoldsCommit(git, repository.branch, merged);
  const obstacle = isThere ? undefined : await mergeObstacle(order, signal);
  if (obstacle !== undefined) return deliverBranchInstead(order, obstacle);

  // The objects come first; a branch is made only if the user's own branch cannot take the result.
  const there = await listUserBranches(git);
  const { branches, names } = branchesForUnlandedWork(run, kept, there);
  await fetchResultBranches(git, store, { branches, there });
  if (!isThere) {
    await fetchResultObjects(git, store, [merged]);
    const problem = await fastForwardOwnCheckout(order, merged);
    if (problem !== undefined) return deliverBranchInstead(order, `git could not merge: ${problem}`);
  }
  const { branch } = repository;
  return { deliver: 'merge', commit: merged, ...(branch !== undefined && { branch }), ...names };
}

/** Delivers a branch, with the reason why it is not merged. */
async function deliverBranchInstead(order: DeliveryOrder, obstacle: string): Promise<Delivered> {
  if (order.isStrict === true) throw new UsageError(obstacle);
  return { ...(await deliverResultBranch(order)), instead: obstacle };
}

/** Throws UsageError if the branch holds commits that are not part of the result. */
async function refuseBranchOfOtherWork(order: DeliveryOrder, branch: string, there: string | undefined): Promise<void> {
  const { store, env, merged } = order;
  if (there === undefined || there === merged) return;
  const git = gitAt({ gitDir: store, env });
  const { code } = await git(['merge-base', '--is-ancestor', there, merged], { accept: [1, 128] });
  if (code !== 0) throw new UsageError(`branch ${branch} holds other commits, which would be lost: name another`);
}

// Already delivered before an interruption, or nothing to deliver.
async function branchHoldsCommit(git: Git, branch: string | undefined, commit: string): Promise<boolean> {
  if (branch === undefined) return false;
  // 128: the commit does not exist.
  const { code } = await git(['merge-base', '--is-ancestor', commit, `refs/heads/${branch}`], { accept: [1, 128] });
  return code === 0;
}

async function deliverAsPatches({
  repository,
  env,
  store,
  base,
  merged,
  patchFolder,
}: DeliveryOrder): Promise<Delivered> {
  if (merged === base) return { deliver: 'patch', commit: merged, patches: [] };
  const { each, combined } = await writeResultPatches(gitAt({ gitDir: store, env }), {
    base,
    merged,
    folder: patchFolder,
  });
  // From a folder below the top, git would silently leave out everything outside it.
  const next = `git -C ${quoteResultBranch(repository.top)} apply ${quoteResultBranch(combined)}`;
  return { deliver: 'patch', commit: merged, patches: [...each, combined], next };
}

type Branch = { readonly branch: string; readonly commit: string };
type TaskBranches = { readonly branches: readonly Branch[]; readonly names: Pick<Delivered, 'renamed'> };

type Branches = ReadonlyMap<string, string>; // branch names with their commits

async function listUserBranches(git: Git, ...more: readonly string[]): Promise<Branches> {
  const wanted = ['refs/heads/drover/', ...more.map((branch) => `refs/heads/${branch}`)];
  const { out } = await git(['for-each-ref', '--format=%(objectname) %(refname:lstrip=2)', ...wanted]);
  const lines = out.split('\n').filter((line) => line !== '');
  return new Map(lines.map((line) => [line.slice(line.indexOf(' ') + 1), line.slice(0, line.indexOf(' '))]));
}

/** Returns the branches for the work of tasks that did not land. */
function branchesForUnlandedWork(run: string, kept: readonly KeptWork[], there: Branches): TaskBranches {
  const renamed: Record<string, string> = {};
  const branches = kept.map(({ task, commit }) => {
    const branch = `drover/${run}/${task}`;
    const other = there.get(branch);
    if (other === undefined || other === commit) return { branch, commit };
    renamed[task] = `${branch}-${commit.slice(0, COMMIT_CHARS)}`;
    return { branch: renamed[task], commit };
  });
  return { branches, names: Object.keys(renamed).length === 0 ? {} : { renamed } };
}

async function fetchResultBranches(
  git: Git,
  store: string,
  { branches, there }: { readonly branches: readonly Branch[]; readonly there: Branches },
): Promise<void> {
  // Git refuses to fetch into a checked-out branch, even if there is nothing to fetch.
  const missing = branches.filter(({ branch, commit }) => there.get(branch) !== commit);
  await fetchResultObjects(
    git,
    store,
    missing.map(({ branch, commit }) => `${commit}:refs/heads/${branch}`),
  );
}

async function fetchResultObjects(git: Git, store: string, refspecs: readonly string[]): Promise<void> {
  if (refspecs.length === 0) return;
  // Disables additions of the repository's config to a fetch, but not the check for forced updates, without which a
  // branch with other content would be overwritten.
  const plain = ['--no-prune', '--no-prune-tags', '--no-tags', '--no-recurse-submodules', '--no-auto-maintenance'];
  const quiet = ['--quiet', '--no-write-fetch-head', '--show-forced-updates'];
  await git(['-c', 'protocol.version=2', 'fetch', ...quiet, ...plain, '--atomic', '--', store, ...refspecs]);
}

function quoteResultBranch(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
