// The removal of a run: lists the work that would be lost, and removes the run.
//
// Guarantees
//   1. A run that a process works on is refused.
//   2. The journal goes last and in one step, so a removal that a crash cut off can be repeated.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  findRunRemains,
  isRemainKeptElsewhere,
  removeRunRemains,
  type RunRemains,
} from '@drover/coordinator/gc/run-remains';
import { garbageBytesIn } from '@drover/coordinator/gc/garbage';
import { runJournalPath } from '@drover/coordinator/run/journal';
import { taskRowsOfState } from '@drover/coordinator/view/state';
import { UsageError } from '@drover/core/errors';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { findPayersInUse, journalStamp, setJournalAside, deleteSetAsideJournals } from '../gc/old-journals.ts';
import { listStoredEvents } from '../history/journal.ts';
import type { KeptRun } from '../history/run.ts';
import type { Io } from '../io.ts';

export type Removal = {
  readonly run: KeptRun;
  readonly remains: RunRemains | undefined;
  readonly bytes: number; // bytes of the journal and its other files
  /** Work that exists only here, one phrase each. */
  readonly lost: readonly string[];
  readonly stamp: string;
};

/** Lists what a removal would lose. Read-only. Throws UsageError for a run that cannot be removed. */
export async function planRunRemoval(run: KeptRun, short: string, io: Io): Promise<Removal> {
  const { home, id, live, past } = run;
  if (live)
    throw new UsageError(`run ${short} is at work; stop it first, or watch it with: drover logs ${short} --follow`);
  if ((await findPayersInUse(home)).has(id))
    throw new UsageError(
      `run ${short} shares a budget with a run of the same batch that can be resumed; remove that first`,
    );
  const env = childProcessEnvironment(io.env);
  const commits = new Set(attemptsWithWork(run).keys());
  const repository = past?.settings.repository;
  const remains =
    repository === undefined ? undefined : await findRunRemains({ home, run: id, repository, env, commits });
  if (remains?.slots.some(({ isTaken }) => isTaken) === true)
    throw new UsageError(`a process is at work in a workspace of run ${short}; stop it first`);
  const journal = runJournalPath(home, id);
  const lost = await listLostWork({ run, remains }, env);
  return { run, remains, lost, bytes: await garbageBytesIn(dirname(journal)), stamp: await journalStamp(journal) };
}

async function listLostWork(
  { run, remains }: Pick<Removal, 'run' | 'remains'>,
  env: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const { past, state } = run;
  const lost: string[] = [];
  const isLost = async (commit: string) =>
    remains === undefined || !(await isRemainKeptElsewhere(remains, commit, env));
  const head = past?.ledger.head;
  const patches = (state.end?.delivered?.patches ?? []).filter((path) => existsSync(path));
  if (head !== undefined && (await isLost(head))) {
    const many =
      past?.ledger.landed.size === 1 ? 'the task that landed' : `the ${past?.ledger.landed.size} tasks that landed`;
    lost.push(
      `${many}: on no branch of ${past?.settings.repository}${patches.length > 0 ? ', only in its patches, which go too' : ''}`,
    );
  }
  for (const { task, status, commit, files } of taskRowsOfState(state)) {
    if (status === 'landed' || commit === undefined || !(await isLost(commit))) continue;
    lost.push(`the work of task ${task}, which did not land: ${files.length} ${files.length === 1 ? 'file' : 'files'}`);
  }
  const last = new Set(taskRowsOfState(state).flatMap(({ commit }) => commit ?? []));
  const tasks = attemptsWithWork(run);
  for (const { commit } of remains?.userBranches ?? []) {
    if (last.has(commit) || !(await isLost(commit))) continue;
    lost.push(`the work of an earlier attempt at task ${tasks.get(commit)}, which did not land`);
  }
  for (const { task, hasChanges } of remains?.slots ?? [])
    if (hasChanges) lost.push(`changes in the workspace of task ${task} that are in no commit`);
  return lost;
}

/** Commits of all attempts, each with its task. */
function attemptsWithWork({ records, live, state }: KeptRun): ReadonlyMap<string, string> {
  const ends = listStoredEvents({ records, live }).flatMap((event): [string, string][] =>
    event.type === 'task_end' && event.commit !== undefined ? [[event.commit, event.task ?? '']] : [],
  );
  const landed = taskRowsOfState(state).flatMap(({ commit, task }): [string, string][] =>
    commit ? [[commit, task]] : [],
  );
  return new Map([...ends, ...landed]);
}

export type Removed = { readonly stayed: readonly string[] }; // branches

/** Throws UsageError if a process has begun to work on the run since it was listed. */
export async function removeRun({ run, remains, stamp }: Removal, short: string, io: Io): Promise<Removed> {
  const { home, id } = run;
  const env = childProcessEnvironment(io.env);
  const folder = dirname(runJournalPath(home, id));
  let stayed: readonly string[] = [];
  const clear = async () => {
    stayed = remains === undefined ? [] : await removeRunRemains(remains, env);
  };
  const why = await setJournalAside({ home, folder, stamp }, clear);
  if (why !== undefined) throw new UsageError(`run ${short} was not removed: ${why}`);
  await deleteSetAsideJournals(home);
  return { stayed: [...stayed, ...(remains?.stayingBranches ?? [])] };
}
