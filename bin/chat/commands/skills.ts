// /skill: lists the skills, or gives one to the agent with the next message.

import { UsageError } from '@drover/core/errors';
import { skillBodyForAgent } from '@drover/core/tools/skill';
import { suggestNearestWord } from '@drover/documents/suggestion';
import type { Chat } from './slash.ts';

export async function useChatSkill({ talk, say }: Chat, name: string): Promise<void> {
  const { skills } = talk.work.extensions;
  if (name === '') {
    if (skills.length === 0) return say('there are no skills; drover trust lists those of the project');
    return say(skills.map((each) => `${each.name}: ${each.description}`).join('\n'));
  }
  const skill = skills.find((each) => each.name === name);
  if (skill === undefined) {
    const names = skills.map((each) => each.name);
    throw new UsageError(
      `there is no skill '${name}'${suggestNearestWord(name, names) || '; /skill lists what there is'}`,
    );
  }
  talk.note(skillBodyForAgent(skill));
  return say(`the skill ${name} goes along with your next message`);
}
