// What a run takes up again when it goes on: what was interrupted, and what failed for a reason that lies
// outside of the task and may be gone by now: the money, the provider, a worker that was lost. What failed
// for good stays as it is, and so does what waits for it.
//
// A plan with something to take up is a call of the coordinator's that is open again. Whatever the
// coordinator was told of it, and said since, is as if it had not been: it hears what became of the plan
// when something has become of it.

import type { Recorded } from '@drover/protocol/events';
import { type Failure, traitsOf } from '@drover/protocol/failures';
import { isDone, type TaskStatus } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';

type TaskStanding = { status?: TaskStatus; failure?: Failure; failures: number };

/** Opens again what can be, and says which tasks of the plan are open now. */
export function reopened(planned: readonly PlannedTask[], tasks: ReadonlyMap<string, TaskStanding>): readonly string[] {
  for (const { id } of planned) {
    const task = tasks.get(id);
    if (task?.status === 'failed' && isPassing(task.failure)) open(task);
  }
  // What was skipped waits again, unless for something that failed for good; and so on down the plan.
  let waiting = planned.filter(({ id }) => tasks.get(id)?.status === 'skipped');
  for (let before = -1; before !== waiting.length;) {
    before = waiting.length;
    for (const task of waiting) if (!isHopeless(task, tasks)) open(tasks.get(task.id));
    waiting = waiting.filter(({ id }) => tasks.get(id)?.status === 'skipped');
  }
  return planned.flatMap(({ id }) => (tasks.get(id)?.status === undefined ? [id] : []));
}

function open(task: TaskStanding | undefined): void {
  if (task === undefined) return;
  // Why it failed stays known: it says whether its workspace holds the only copy of what it did.
  delete task.status;
  task.failures = 0;
}

function isHopeless({ dependsOn }: PlannedTask, tasks: ReadonlyMap<string, TaskStanding>): boolean {
  return dependsOn.some((id) => {
    const status = tasks.get(id)?.status;
    return status !== undefined && !isDone(status);
  });
}

/** Trying again later, with more money or with another key may help; the task itself is not to blame. */
export function isPassing(failure: Failure | undefined): boolean {
  return failure !== undefined && traitsOf(failure).resume;
}

/** The coordinator's records as they are when the call is open again. What was spent is spent. */
export function withCallOpen(records: Recorded[], callId: string | undefined): Recorded[] {
  const end = records.findIndex((record) => record.type === 'tool_execution_end' && record.callId === callId);
  if (callId === undefined || end < 0) return records;
  return [...records.slice(0, end), ...records.slice(end).filter(({ type }) => type === 'usage')];
}
