// The changes of a run or of one of its tasks: which two trees they lie between, whatever became of the work.
//
//   the run        from its base to everything that has landed
//   landed task    its own commit on the result
//   other task     its last commit on the base of the attempt
//   task at work   from the base of the attempt to its workspace as it is now

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import {
  gitChangedFiles,
  gitDiffText,
  type DiffHow,
  type FileChange,
  gitHasCommit,
} from '@drover/coordinator/git/diff';
import { type Range, withGitTreeOfWorkspace } from '@drover/coordinator/git/diff';
import type { Git } from '@drover/coordinator/git/git';
import type { TaskProgress } from '@drover/coordinator/view/state';
import { UsageError } from '@drover/core/errors';
import { findTaskOfRun } from '../history/run.ts';
import type { Io } from '../io.ts';
import { type NamedRun, openRunStore } from './run-store.ts';

export type RunDiff = Range & {
  /** One character per byte. */
  readonly text: (how: DiffHow) => Promise<string>;
  readonly files: () => Promise<readonly FileChange[]>;
};

/** Calls `show` with the changes, which are readable until it returns. Throws UsageError if there are none. */
export async function withRunDiff<Result>(
  run: NamedRun,
  { task: typed, io }: { readonly task: string | undefined; readonly io: Io },
  show: (diff: RunDiff) => Promise<Result>,
): Promise<Result> {
  const task = typed === undefined ? undefined : findTaskOfRun(run, typed);
  const { store, env } = await openRunStore(run, io);
  if (task !== undefined && isTaskAtWork(run, task)) {
    const { base, workspace } = task.attempt ?? { base: run.settings.base, workspace: '' };
    return withGitTreeOfWorkspace({ store: store.gitDir, workspace, base, env }, (git, tree) =>
      show(diffBetweenTrees(git, { from: base, to: tree })),
    );
  }
  const range = task === undefined ? rangeOfRun(run) : rangeOfTask(run, task);
  if (range === undefined) return show(NO_CHANGES);
  if (await gitHasCommit(store.git, range.to)) return show(diffBetweenTrees(store.git, range));
  return show(await diffFromPatches(run, task));
}

const NO_CHANGES: RunDiff = { from: '', to: '', text: async () => '', files: async () => [] };

function diffBetweenTrees(git: Git, range: Range): RunDiff {
  return { ...range, text: (how) => gitDiffText(git, range, how), files: () => gitChangedFiles(git, range) };
}

/** An open attempt: a worker is at work, or an interruption left its workspace. */
function isTaskAtWork({ past }: NamedRun, { id, attempt, plan }: TaskProgress): boolean {
  const step = past?.ledger.task(id).step;
  return plan.mode === 'write' && step?.at === 'attempting' && attempt !== undefined && existsSync(attempt.workspace);
}

function rangeOfRun({ state, settings }: NamedRun): Range | undefined {
  const head = state.head ?? settings.base;
  return head === settings.base ? undefined : { from: settings.base, to: head };
}

function rangeOfTask({ short }: NamedRun, { id, commit, state, plan, attempts }: TaskProgress): Range | undefined {
  if (commit !== undefined) return { from: `${commit}^`, to: commit };
  if (attempts === 0 && plan.mode === 'write' && state !== 'done')
    throw new UsageError(`task ${id} of run ${short} has not changed anything: it was not begun`);
  return undefined;
}

/** The patches that a run delivered, for a run whose commits gc has removed. */
async function diffFromPatches({ state, short }: NamedRun, task: TaskProgress | undefined): Promise<RunDiff> {
  const combined = state.end?.delivered?.patches?.at(-1);
  if (task !== undefined || combined === undefined || !existsSync(combined))
    throw new UsageError(
      `the commits of run ${short} are gone: they are in no branch of its repository, and drover's copy was removed`,
    );
  const text = async ({ form }: DiffHow): Promise<string> => {
    if (form !== 'patch' && form !== 'whole')
      throw new UsageError(`only the patch of run ${short} is left, at ${combined}: leave out --stat and --name-only`);
    return readFile(combined, 'latin1');
  };
  return { from: '', to: '', text, files: async () => [] };
}
