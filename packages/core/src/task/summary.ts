// A worker's summary of its work: what it submitted, or else its last text.

import { toolNamedInCall } from '../agent/calls/calls.ts';
import { isConversationSummary } from '../conversation/compaction.ts';
import { isJsonObject } from '@drover/protocol/json';
import { isModelAnswerCutOff } from '../model/partial-answer.ts';
import type { AssistantMessage, Message } from '@drover/protocol/messages';
import { submitResult } from '../tools/submit-result.ts';

/** Expects only the worker's own messages, because the seed comes from the coordinator. */
export function taskSummaryIn(messages: readonly Message[]): string {
  const answers = messages
    .filter((message) => message.role === 'assistant')
    .filter((message) => !isModelAnswerCutOff(message));
  const submitted = answers
    .at(-1)
    ?.content.findLast((part) => part.type === 'tool_call' && toolNamedInCall([submitResult], part.name) !== undefined);
  const parsed = submitted?.type === 'tool_call' ? submitResult.parse(submitted.args) : undefined;
  const summary = parsed?.ok === true && isJsonObject(parsed.input) ? parsed.input['summary'] : undefined;
  if (typeof summary === 'string') return summary;
  return answers.map(textOfTaskAnswer).findLast((text) => text !== '') ?? '';
}

/** The messages after the seed, or after the compaction summary that replaced the seed. */
export function ownMessagesOfTask(messages: readonly Message[], seeded: number): readonly Message[] {
  const summary = messages.findLastIndex(isConversationSummary);
  return messages.slice(summary === -1 ? seeded : summary + 1);
}

function textOfTaskAnswer({ content }: AssistantMessage): string {
  return content
    .map((part) => (part.type === 'text' ? part.text : ''))
    .join('')
    .trim();
}
