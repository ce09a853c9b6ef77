// The tools of every agent, in the order in which requests declare them. The order is part of the cached prefix
// of every request, so add new tools at the end.

import type { ToolDefinition } from '@drover/protocol/messages';
import { commit } from './commit.ts';
import { edit } from './edit.ts';
import { git } from './git.ts';
import { glob } from './glob.ts';
import { grep } from './grep.ts';
import { list } from './list.ts';
import { read } from './read.ts';
import { type ServedTool, servedTools } from './served/served.ts';
import { shell } from './shell.ts';
import { submitPlan, type CarryOut } from './submit-plan.ts';
import { submitResult } from './submit-result.ts';
import { skillTools } from './skill.ts';
import type { Skill } from '../skills/skill.ts';
import { toolDefinitionOf, type Tool } from './tool.ts';
import { write } from './write.ts';

export const builtinTools: readonly Tool[] = [read, write, edit, list, glob, grep, shell, git];

/** Tools of a session in the user's folder. Tasks have no `commit`: drover commits their workspaces. */
export const sessionTools: readonly Tool[] = [...builtinTools, commit];

/** Tools of a run. Coordinator and workers declare the same ones; each is refused the tools of the other. */
export function builtinRunTools(carryOut: CarryOut, skills: readonly Skill[] = []): readonly Tool[] {
  return [...builtinTools, submitPlan(carryOut), submitResult, ...skillTools(skills)];
}

/** Returns the tool definitions of a run, the same for the coordinator and all workers. Those of servers come last. */
export function builtinRunDefinitions(
  skills: readonly Skill[] = [],
  served: readonly ServedTool[] = [],
): readonly ToolDefinition[] {
  const tools = [...builtinRunTools(refuseToolWithoutPlan, skills), ...servedTools(served, refuseToolWithoutPlan)];
  return tools.filter(({ served }) => served?.isDeferred !== true).map(toolDefinitionOf);
}

async function refuseToolWithoutPlan(): Promise<never> {
  throw new Error('a tool that is only declared was called');
}
