// Loads skills, custom agents and hooks: those of the user, and those of the project that count.

import { isAbsolute, join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { type Extensions, NO_EXTENSIONS } from '@drover/core/hooks/extensions';
import type { Agent, PlannedTask } from '@drover/protocol/plan';
import type { Project } from '@drover/trust/project';
import { printError, type Io } from '../io.ts';
import { chooseModel } from '../model/model-choice.ts';
import { homeFolder, type Settings, environmentText } from '../start/settings.ts';
import { statIfThere } from '@drover/core/files/lookup';

/** Warnings about files with mistakes go to standard error. */
export async function loadExtensions(project: Project, settings: Settings, io: Io): Promise<Extensions> {
  const folders = userExtensionFolders(io.env);
  const here = [project.trusted('skill'), project.trusted('agent'), project.trusted('hooks')];
  const isEmpty = here.every((files) => files.length === 0) && !(await hasExtensionFolder(folders));
  // Most starts find none, and parsers take time to load.
  if (isEmpty) return { ...NO_EXTENSIONS, hooks: settings.hooks };
  const [
    { extensionFilesOfProject: ofProject, extensionFilesOfUser: ofUser },
    { readSkillFiles: readSkills },
    { readAgentFiles: readAgents },
    { readClaudeHooks },
  ] = await Promise.all([
    import('@drover/extensions/source'),
    import('@drover/extensions/skills'),
    import('@drover/extensions/agents'),
    import('@drover/extensions/claude-hooks'),
  ]);
  const [skillFiles, agentFiles, hookFiles] = here.map(ofProject);
  const [ownSkills, ownAgents, ownToml] = await Promise.all([
    ofUser(folders.skills, { main: 'SKILL.md' }),
    ofUser(folders.agents, { ends: '.md' }),
    ofUser(folders.tomlAgents, { ends: '.toml' }),
  ]);
  const skills = readSkills([...(skillFiles ?? []), ...ownSkills.files]);
  const agents = await readAgents([...(agentFiles ?? []), ...ownAgents.files, ...ownToml.files]);
  const hooks = readClaudeHooks(hookFiles ?? []);
  const usable = agents.agents.map((agent) => checkAgentModel(agent, settings, project.repository));
  const warnings = [ownSkills, ownAgents, ownToml, skills, agents, hooks].flatMap((each) => each.warnings);
  for (const warning of [...warnings, ...usable.flatMap((each) => each.warnings)]) await printError(io, warning);
  return {
    skills: skills.skills,
    agents: usable.map(({ agent }) => agent),
    hooks: [...settings.hooks, ...hooks.hooks],
  };
}

/** Throws UsageError for a task whose agent is not there, before anything is spent. */
export function checkPlannedAgents(tasks: readonly PlannedTask[], { agents }: Pick<Extensions, 'agents'>): void {
  for (const { id, agent } of tasks)
    if (agent !== undefined && !agents.some(({ name }) => name === agent))
      throw new UsageError(
        `the task ${id} names the agent '${agent}', which is not here; ${listAgentNames(agents)}, and drover trust lists those that wait for an approval`,
      );
}

function listAgentNames(agents: readonly Pick<Agent, 'name'>[]): string {
  return agents.length === 0 ? 'there are no agents' : `there are: ${agents.map(({ name }) => name).join(', ')}`;
}

type UserFolders = {
  readonly skills: readonly string[];
  readonly agents: readonly string[];
  readonly tomlAgents: readonly string[];
};

function userExtensionFolders(env: Io['env']): UserFolders {
  const home = homeFolder(env);
  const base = environmentText(env, 'XDG_CONFIG_HOME');
  const own = join(base !== undefined && isAbsolute(base) ? base : join(home, '.config'), 'drover');
  const named = (name: string) => [join(own, name), join(home, '.agents', name), join(home, '.claude', name)];
  return { skills: named('skills'), agents: named('agents'), tomlAgents: [join(home, '.codex', 'agents')] };
}

async function hasExtensionFolder(folders: UserFolders): Promise<boolean> {
  const found = await Promise.all(Object.values(folders).flat().map(statIfThere));
  return found.some((each) => each !== undefined);
}

/** The agent with the label of its model; without its model, and with a warning, if drover can't ask it. */
function checkAgentModel(agent: Agent, settings: Settings, top: string): { agent: Agent; warnings: readonly string[] } {
  const { model, ...others } = agent;
  if (model === undefined) return { agent, warnings: [] };
  try {
    return { agent: { ...others, model: chooseModel(model, settings, top).label }, warnings: [] };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const warning = `the agent ${agent.name} has a model that can't be asked (${error.message}), so that of the workers is used`;
    return { agent: others, warnings: [warning] };
  }
}
