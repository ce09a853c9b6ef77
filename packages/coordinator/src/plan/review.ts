// The review: a task that drover adds to a plan if the user has chosen a model for the role `review`.
//
// It is a task of mode `read` after all tasks that write. So it reads what landed, changes nothing, and has a row, a
// price and a journal like any task. The coordinator reads its result and may submit another plan.

import { modelRolesOfRun, type RunSettings } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';

const ID = 'review';

/** The plan with its review; the same plan if there is nothing to review, or no model for it. */
export function planWithReview(
  tasks: readonly PlannedTask[],
  settings: RunSettings,
  done: ReadonlySet<string>,
): readonly PlannedTask[] {
  const [model] = modelRolesOfRun(settings).review ?? [];
  const written = tasks.filter(({ mode }) => mode === 'write').map(({ id }) => id);
  if (model === undefined || written.length === 0) return tasks;
  const taken = new Set([...tasks.map(({ id }) => id), ...done]);
  const prompt = reviewPrompt(settings);
  return [
    ...tasks,
    {
      id: freeReviewTaskId(taken),
      title: 'Review the result',
      prompt,
      dependsOn: written,
      files: [],
      mode: 'read',
      model,
    },
  ];
}

function freeReviewTaskId(taken: ReadonlySet<string>): string {
  for (let n = 1; ; n++) {
    const id = n === 1 ? ID : `${ID}-${n}`;
    if (!taken.has(id)) return id;
  }
}

function reviewPrompt({ goal, base }: RunSettings): string {
  return [
    `Review what the other tasks changed. The goal was: ${goal}`,
    `git log and git diff with the revision ${base.slice(0, 12)}..HEAD show all of it. Read the code around each change.`,
    'Look for mistakes that tests may not find: parts of the goal that are missing, callers that were forgotten, cases that break, changes beyond the goal. Change nothing yourself.',
    'Submit a result that names each mistake with its file and line, the worst first; or say that you found none.',
  ].join('\n\n');
}
