// The text of a permission question: all that the user is asked to allow.

import type { Question } from '@drover/core/agent/calls/calls';
import { SERVED_PREFIX } from '@drover/core/tools/served/names';
import { writtenOut } from './terminal-text.ts';

type Asked = Pick<Question, 'tool' | 'subject' | 'input'>;

/** The subject of the call. For an MCP tool it is only a name, so the arguments follow. */
export function questionText({ tool, subject, input }: Asked): string {
  return writtenOut(isServed(tool) ? `${subject} ${JSON.stringify(input)}` : subject);
}

/** The calls that `always` allows. */
export function alwaysText({ tool, subject }: Asked): string {
  return isServed(tool) ? `${writtenOut(subject)} with any arguments` : `${tool} with exactly this`;
}

function isServed(tool: string | undefined): boolean {
  return tool?.startsWith(SERVED_PREFIX) === true;
}
