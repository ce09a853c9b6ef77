// The tools every agent has, in the order in which the model is told of them. The order is part of
// the cached beginning of every request: a new one goes to the end.

import type { ToolDefinition } from '@drover/protocol/messages';
import { commit } from './commit.ts';
import { edit } from './edit.ts';
import { git } from './git.ts';
import { glob } from './glob.ts';
import { grep } from './grep.ts';
import { list } from './list.ts';
import { read } from './read.ts';
import { shell } from './shell.ts';
import { submitPlan, type CarryOut } from './submit-plan.ts';
import { submitResult } from './submit-result.ts';
import { definitionOf, type Tool } from './tool.ts';
import { write } from './write.ts';

export const builtinTools: readonly Tool[] = [read, write, edit, list, glob, grep, shell, git];

/** Those of a session in the user's own folder; in the workspace of a task drover commits. */
export const sessionTools: readonly Tool[] = [...builtinTools, commit];

/** Those of a run: the coordinator and all its workers declare the same, and each is refused what is not its own. */
export function runTools(carryOut: CarryOut): readonly Tool[] {
  return [...builtinTools, submitPlan(carryOut), submitResult];
}

/** What the model is told of them, whoever it is. */
export function runDefinitions(): readonly ToolDefinition[] {
  return runTools(unplanned).map(definitionOf);
}

async function unplanned(): Promise<never> {
  throw new Error('a tool that is only declared was called');
}
