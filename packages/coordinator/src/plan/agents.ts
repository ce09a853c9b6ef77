// Custom agents in a plan: which one does a task, and what its workers begin with.

import type { Agent, PlannedTask } from '@drover/protocol/plan';
import type { Extensions } from '@drover/core/hooks/extensions';
import type { TaskSpec } from '@drover/core/task/task';
import type { Seed } from './seed.ts';

/** The agent that a task names. A plan with an unknown agent is refused before. */
export function plannedAgentOfTask({ agents }: Pick<Extensions, 'agents'>, { agent }: PlannedTask): Agent | undefined {
  return agent === undefined ? undefined : agents.find(({ name }) => name === agent);
}

/** Puts the agent's prompt behind the shared seed: all workers of one agent begin with the same bytes. */
export function planWithAgent(seed: Seed, agent: Agent | undefined): Seed {
  if (agent === undefined) return seed;
  const text = `For this task you are the agent ${agent.name}:\n\n${agent.prompt}`;
  return { ...seed, messages: [...seed.messages, { role: 'user', content: [{ type: 'text', text }] }] };
}

/** Tasks whose agent has a model of its own get it, unless they name one. */
export function planWithAgentModels(
  tasks: readonly PlannedTask[],
  extensions: Pick<Extensions, 'agents'>,
): readonly PlannedTask[] {
  return tasks.map((task) => {
    const model = task.model ?? plannedAgentOfTask(extensions, task)?.model;
    return model === undefined || model === task.model ? task : { ...task, model };
  });
}

/** The paragraph of the planner's instructions that lists the agents; undefined if there are none. */
export function agentCatalogueForPlan(agents: readonly Agent[]): string | undefined {
  if (agents.length === 0) return undefined;
  const lines = agents.map(({ name, description }) => `- ${name}: ${description}`);
  return `A task may name an agent that fits it, with \`agent\`:\n${lines.join('\n')}`;
}

/** The extensions that the worker of a task gets. */
export function extensionsOfPlannedTask(extensions: Extensions, task: PlannedTask): Partial<TaskSpec> {
  const { skills, hooks } = extensions;
  const toolsAllowed = plannedAgentOfTask(extensions, task)?.tools;
  return {
    ...(skills.length > 0 && { skills }),
    ...(hooks.length > 0 && { hooks }),
    ...(toolsAllowed !== undefined && { toolsAllowed }),
  };
}
