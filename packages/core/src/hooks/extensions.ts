// Extensions as data: skills, custom agents and hooks that the user, or a trusted project, adds to a run or session.

import type { Agent } from '@drover/protocol/plan';
import type { Hook } from './hook.ts';
import type { Skill } from '../skills/skill.ts';

export type Extensions = {
  readonly skills: readonly Skill[];
  readonly agents: readonly Agent[];
  readonly hooks: readonly Hook[];
};

export const NO_EXTENSIONS: Extensions = { skills: [], agents: [], hooks: [] };
