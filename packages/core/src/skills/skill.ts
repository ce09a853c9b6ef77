// Skills as data: an agent sees names and descriptions, and loads the text and files of a skill when it needs them.
//
// A TaskSpec carries the skills of its run, so this file holds no file access but that of the tool.

/** A file of a skill, with the digest by which the skill was approved. */
type SkillFile = { readonly name: string; readonly sha256: string };

export type Skill = {
  readonly name: string;
  readonly description: string;
  readonly body: string;
  readonly folder: string; // absolute
  /** The folder as the agent is told: relative to the project, or absolute for the user's own. */
  readonly shown: string;
  readonly files: readonly SkillFile[]; // besides SKILL.md
};

/** The part of the system prompt that lists the skills; undefined if there are none. */
export function skillCatalogue(skills: readonly Skill[]): string | undefined {
  if (skills.length === 0) return undefined;
  const lines = skills.map(({ name, description }) => `- ${name}: ${description}`);
  return `Skills are instructions for certain kinds of work. When one fits your task, load it with the skill tool before you begin.\n${lines.join('\n')}`;
}
