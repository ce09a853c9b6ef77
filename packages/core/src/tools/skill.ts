// skill: loads the text of a skill, or one of its files. A file that changed since the skill was loaded is refused.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { readOwnFile } from '../files/own-file.ts';
import type { Skill } from '../skills/skill.ts';
import { defineTool, type Tool } from './tool.ts';

const FILES_SHOWN_MAX = 100;

export const SKILL = 'skill';

/** The tool for these skills; none if there are none. */
export function skillTools(skills: readonly Skill[]): readonly Tool[] {
  return skills.length === 0 ? [] : [skillTool(skills)];
}

function skillTool(skills: readonly Skill[]): Tool {
  return defineTool({
    name: SKILL,
    description: 'Load a skill: its instructions, or with `file` one of the files that it names.',
    input: z.object({
      name: z.string(),
      file: z.optional(z.string().check(z.describe('Path of a file of the skill.'))),
    }),
    access: 'none',
    repeatable: true,
    subject: ({ name }) => name,
    run: async ({ name, file }) => {
      const skill = skills.find((each) => each.name === name);
      if (skill === undefined)
        throw new ToolError(
          `there is no skill '${name}'; the skills are: ${skills.map((each) => each.name).join(', ')}`,
        );
      return file === undefined ? skillBodyForAgent(skill) : readSkillFile(skill, file);
    },
  });
}

/** The instructions of a skill, as the tool and a chat give them to the agent. */
export function skillBodyForAgent({ name, body, shown, files }: Skill): string {
  const names = files.slice(0, FILES_SHOWN_MAX).map((each) => each.name);
  const more = files.length > FILES_SHOWN_MAX ? ` and ${files.length - FILES_SHOWN_MAX} more` : '';
  const list = names.length === 0 ? [] : [`Files of this skill, in ${shown}: ${names.join(', ')}${more}`];
  return [`The skill ${name}:`, body, ...list].join('\n\n');
}

async function readSkillFile({ name, folder, files }: Skill, wanted: string): Promise<string> {
  const plain = wanted.replace(/^(?:\.\/)+/, '');
  const file = files.find((each) => each.name === plain);
  if (file === undefined) {
    const names = files.slice(0, FILES_SHOWN_MAX).map((each) => each.name);
    throw new ToolError(`the skill ${name} has no file '${wanted}'; its files are: ${names.join(', ') || 'none'}`);
  }
  const read = await readOwnFile({ path: join(folder, file.name) });
  if (read.kind !== 'read') throw new ToolError(`${file.name} of the skill ${name} ${read.problem}`);
  const sha256 = createHash('sha256').update(read.bytes).digest('hex');
  if (sha256 !== file.sha256) throw new ToolError(`${file.name} of the skill ${name} has changed since it was loaded`);
  return read.bytes.toString('utf8');
}
