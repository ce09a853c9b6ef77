// The tasks of a run that a retry reopens: all failed ones or those that the user names, and their dependents.

import { canRunResume } from '@drover/coordinator/run/runs';
import type { TaskProgress } from '@drover/coordinator/view/state';
import { UsageError } from '@drover/core/errors';
import type { PlannedTask } from '@drover/protocol/plan';
import { isDone } from '@drover/protocol/run';
import { findTaskOfRun } from '../history/run.ts';
import type { NamedRun } from './run-store.ts';

const FAILED: ReadonlySet<string> = new Set(['failed', 'conflict', 'gate_failed', 'skipped']);

/** Throws UsageError for a task that is done, and if there is nothing to retry. */
export function tasksToRetry(run: NamedRun, typed: readonly string[]): readonly PlannedTask[] {
  const { state, short } = run;
  const chosen = new Set(typed.length === 0 ? listFailedTaskIds(run) : typed.map((id) => findFailedTask(run, id).id));
  if (chosen.size === 0) throw new UsageError(nothingToRetrySentence(run));
  const tasks = [...state.tasks.values()];
  for (let before = -1; before !== chosen.size;) {
    before = chosen.size;
    for (const { id, plan, state: status } of tasks) {
      const isNeeded = tasks.some((task) => chosen.has(task.id) && task.plan.dependsOn.includes(id));
      const isFreed = status === 'skipped' && plan.dependsOn.some((each) => chosen.has(each));
      if (FAILED.has(status) && (isNeeded || isFreed)) chosen.add(id);
    }
  }
  const found = tasks.flatMap(({ id, plan }) => (chosen.has(id) ? [plan] : []));
  if (found.length === 0) throw new UsageError(`run ${short} has no tasks to retry`);
  return found;
}

/** Those of the last plan, because a later plan replaces what failed before it. */
function listFailedTaskIds({ state }: NamedRun): readonly string[] {
  const last = (state.plans.at(-1)?.tasks ?? []).filter((id) => FAILED.has(state.tasks.get(id)?.state ?? ''));
  if (last.length > 0) return last;
  return [...state.tasks.values()].flatMap((task) => (FAILED.has(task.state) ? [task.id] : []));
}

function findFailedTask(run: NamedRun, typed: string): TaskProgress {
  const task = findTaskOfRun(run, typed);
  const { id, state } = task;
  const which = `task ${id} of run ${run.short}`;
  if (state === 'landed') throw new UsageError(`${which} has landed, so there is nothing to retry`);
  if (isDone(state)) throw new UsageError(`${which} is done and needed no change, so there is nothing to retry`);
  if (!FAILED.has(state) && task.failure?.kind !== 'task.cancelled')
    throw new UsageError(`${which} was interrupted and did not fail; resume the run with: drover resume ${run.short}`);
  return task;
}

function nothingToRetrySentence({ state, short }: NamedRun): string {
  if (canRunResume(state)) return `no task of run ${short} has failed; resume it with: drover resume ${short}`;
  const isEmpty = state.tasks.size === 0;
  return isEmpty
    ? `run ${short} has no tasks to retry`
    : `every task of run ${short} is done, so there is nothing to retry`;
}
