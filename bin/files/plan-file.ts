// The plan file of `drover run --plan`: its schema and its reader. plan-text.ts writes one.

import { relative, resolve } from 'node:path';
import { z } from 'zod';
import { planProblems } from '@drover/coordinator/plan/graph';
import { MB, requireOwnFile } from '@drover/core/files/own-file';
import type { PlannedTask } from '@drover/protocol/plan';
import { requireFileDocument } from './document.ts';
import { fieldMistake, text, texts } from './values.ts';

// A plan of 1,000 tasks with long prompts is larger than 1 MB.
const PLAN_BYTES_MAX = 16 * MB;

const task = z
  .strictObject({
    id: text.describe('Letters, digits, - and _, at most 64. Other tasks name it in dependsOn.'),
    title: text
      .exactOptional()
      .describe('One line; it becomes the subject of the commit. Default: the first line of the prompt.'),
    prompt: text.describe('All that the worker has to know.'),
    dependsOn: texts.exactOptional().describe('Ids of the tasks that must be done before this one. Default: none.'),
    files: texts
      .exactOptional()
      .describe(
        'Files that the task means to change. Tasks that share a file do not run at the same time. Default: none.',
      ),
    mode: z
      .enum(['write', 'read'])
      .exactOptional()
      .describe('read: the task changes nothing, and only its report counts. Default: write.'),
    gates: texts.exactOptional().describe('Commands that must pass in the workspace of the task. Default: none.'),
    model: text
      .exactOptional()
      .describe('Model of the worker, as --model takes it. Default: the models of the role work.'),
    runsOn: texts
      .exactOptional()
      .describe('Labels that a worker host must have; only with --queue. Default: every host may.'),
    agent: text.exactOptional().describe('Custom agent that does the task, by its name. Default: a plain worker.'),
  })
  .transform(
    ({
      id,
      prompt,
      title = prompt.split('\n', 1)[0] ?? '',
      dependsOn = [],
      files = [],
      mode = 'write',
      gates,
      model,
      runsOn,
      agent,
    }): PlannedTask => ({
      id,
      title,
      prompt,
      dependsOn,
      files,
      mode,
      ...(gates !== undefined && { gates }),
      ...(model !== undefined && { model }),
      ...(runsOn !== undefined && { runsOn }),
      ...(agent !== undefined && { agent }),
    }),
  );

export const planSchema = z.strictObject({
  goal: text.exactOptional().describe('What the plan is for. Default: the goal on the command line.'),
  tasks: z.array(task).describe('The tasks, in the order in which their work lands.'),
});

type Plan = z.output<typeof planSchema>;

export type PlanFile = { readonly [Key in keyof Plan]: Readonly<Plan[Key]> };

export type PlanPlace = PlanRules & { readonly path: string; readonly cwd: string };

export type PlanRules = {
  readonly tasksMax: number;
  /** Returns the label of a task's model. Throws UsageError for a model that can't be used. */
  readonly modelOf: (name: string) => string;
  /** Names of the custom agents that there are. */
  readonly agents: readonly string[];
};

/** Throws UsageError for a file that cannot be read or contains no valid plan. */
export async function readPlanFile({ path, cwd, ...rules }: PlanPlace): Promise<PlanFile> {
  const file = relative(cwd, resolve(cwd, path)) || path;
  const bytes = await requireOwnFile(
    { path: resolve(cwd, path), bytesMax: PLAN_BYTES_MAX },
    ({ problem, fix }) => `--plan: ${file} ${problem}; ${fix}`,
  );
  return parsePlanFile(bytes.toString('utf8'), file, rules);
}

export function parsePlanFile(written: string, file: string, { tasksMax, modelOf, agents }: PlanRules): PlanFile {
  const schema = planSchema.superRefine(({ tasks }, context) => {
    for (const { at, message } of planProblems(tasks, { tasksMax, done: new Set(), agents }))
      context.addIssue({ code: 'custom', path: ['tasks', at], message });
    tasks.forEach(({ model }, at) => {
      const message = model === undefined ? undefined : fieldMistake(() => modelOf(model));
      if (message !== undefined) context.addIssue({ code: 'custom', path: ['tasks', at, 'model'], message });
    });
  });
  const { goal, tasks } = requireFileDocument(written, file, { what: 'the plan', schema }).value;
  const labelled = tasks.map((each) => (each.model === undefined ? each : { ...each, model: modelOf(each.model) }));
  return { ...(goal !== undefined && { goal }), tasks: labelled };
}
