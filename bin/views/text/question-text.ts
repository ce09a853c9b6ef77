// What a question asks the user to allow, in full.

import type { Question } from '@drover/core/agent/calls/calls';
import { SERVED_PREFIX } from '@drover/core/tools/served/names';
import { writtenOut } from './terminal-text.ts';

type Asked = Pick<Question, 'tool' | 'subject' | 'input'>;

/** The subject of the call. That of an MCP tool is only its name, so its arguments follow. */
export function questionText({ tool, subject, input }: Asked): string {
  return writtenOut(isServed(tool) ? `${subject} ${JSON.stringify(input)}` : subject);
}

/** What `always` allows. */
export function alwaysText({ tool, subject }: Asked): string {
  return isServed(tool) ? `${writtenOut(subject)} with any arguments` : `${tool} with exactly this`;
}

function isServed(tool: string | undefined): boolean {
  return tool?.startsWith(SERVED_PREFIX) === true;
}
