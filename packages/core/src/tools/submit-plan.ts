// submit_plan: the coordinator's tool to execute a plan. Its result lists the status of the tasks.
//
// Workers declare it too, because all agents of a run share one cached prefix. Their calls are refused.

import * as z from 'zod/mini';
import type { PlannedTask } from '@drover/protocol/plan';
import { defineTool, type Tool, type ToolContext, type ToolOutput } from './tool.ts';

const TASK = z.strictObject({
  id: z.string().check(z.minLength(1), z.describe('Short, unique, kebab-case.')),
  title: z.string().check(z.minLength(1), z.describe('One line; it becomes the subject of the commit.')),
  prompt: z.string().check(z.minLength(1), z.describe('All that the worker has to know.')),
  dependsOn: z.optional(z.array(z.string()).check(z.describe('Ids of tasks whose work it builds on.'))),
  files: z.optional(z.array(z.string()).check(z.describe('Paths or globs it will change.'))),
  mode: z.optional(z.enum(['write', 'read']).check(z.describe('read: look and report, change nothing.'))),
  agent: z.optional(z.string().check(z.describe('Name of the custom agent that does it, if one fits.'))),
});

export const SUBMIT_PLAN = 'submit_plan';

export type CarryOut = (tasks: readonly PlannedTask[], context: ToolContext) => Promise<ToolOutput>;

export function submitPlan(carryOut: CarryOut): Tool {
  return defineTool({
    name: SUBMIT_PLAN,
    description:
      'Have a plan carried out by workers, each in its own copy of the repository, and hear what became of each task. Split where tasks are independent; say what a task builds on. One task is fine.',
    input: z.strictObject({ tasks: z.array(TASK).check(z.minLength(1)) }),
    access: 'none',
    alone: true,
    repeatable: true,
    subject: ({ tasks }) => tasks.map(({ id }) => id).join(', '),
    run: ({ tasks }, context) =>
      carryOut(
        tasks.map(({ dependsOn = [], files = [], mode = 'write', agent, ...task }) => ({
          ...task,
          dependsOn,
          files,
          mode,
          ...(agent !== undefined && { agent }),
        })),
        context,
      ),
  });
}
