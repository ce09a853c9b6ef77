// A worker's summary of its work: what it submitted, or else its last text.

import { toolNamed } from '../agent/calls/calls.ts';
import { isSummary } from '../conversation/compaction.ts';
import { isJsonObject } from '@drover/protocol/json';
import { isCutOff } from '../model/partial-answer.ts';
import type { AssistantMessage, Message } from '@drover/protocol/messages';
import { submitResult } from '../tools/submit-result.ts';

/** Expects only the worker's own messages, because the seed comes from the coordinator. */
export function summaryIn(messages: readonly Message[]): string {
  const answers = messages.filter((message) => message.role === 'assistant').filter((message) => !isCutOff(message));
  const submitted = answers
    .at(-1)
    ?.content.findLast((part) => part.type === 'tool_call' && toolNamed([submitResult], part.name) !== undefined);
  const parsed = submitted?.type === 'tool_call' ? submitResult.parse(submitted.args) : undefined;
  const summary = parsed?.ok === true && isJsonObject(parsed.input) ? parsed.input['summary'] : undefined;
  if (typeof summary === 'string') return summary;
  return answers.map(textOf).findLast((text) => text !== '') ?? '';
}

/** The messages after the seed, or after the compaction summary that replaced the seed. */
export function ownMessages(messages: readonly Message[], seeded: number): readonly Message[] {
  const summary = messages.findLastIndex(isSummary);
  return messages.slice(summary === -1 ? seeded : summary + 1);
}

function textOf({ content }: AssistantMessage): string {
  return content
    .map((part) => (part.type === 'text' ? part.text : ''))
    .join('')
    .trim();
}
