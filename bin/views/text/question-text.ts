// The text of a permission question: all that the user is asked to allow.

import type { Question } from '@drover/core/agent/calls/calls';
import { SERVED_PREFIX } from '@drover/core/tools/served/names';
import { writeOutControls } from './terminal-text.ts';

type Asked = Pick<Question, 'tool' | 'subject' | 'input'>;

/** The subject of the call. For an MCP tool it is only a name, so the arguments follow. */
export function questionText({ tool, subject, input }: Asked): string {
  return writeOutControls(isServedToolQuestion(tool) ? `${subject} ${JSON.stringify(input)}` : subject);
}

/** The calls that `always` allows. */
export function alwaysText({ tool, subject }: Asked): string {
  return isServedToolQuestion(tool) ? `${writeOutControls(subject)} with any arguments` : `${tool} with exactly this`;
}

function isServedToolQuestion(tool: string | undefined): boolean {
  return tool?.startsWith(SERVED_PREFIX) === true;
}
