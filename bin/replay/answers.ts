// Recorded answers as the answers of a scripted model.

import { isJsonObject } from '@drover/protocol/json';
import type { AssistantMessage, AssistantPart, Stop } from '@drover/protocol/messages';
import type { Answer, AnswerPart } from '@drover/rehearsal/script';

const STOPS: Readonly<Record<Stop, NonNullable<Answer['stop']>>> = {
  stop: 'end',
  tool_calls: 'calls',
  length: 'length',
  pause: 'pause',
  refusal: 'refusal',
  // Such an answer is never kept.
  error: 'end',
  aborted: 'end',
};

export function answerOf({ content, stop, usage }: AssistantMessage): Answer {
  const { input, output, cacheRead, cacheWrite } = usage;
  return { parts: content.map(partOf), stop: STOPS[stop], usage: { input, output, cacheRead, cacheWrite } };
}

function partOf(part: AssistantPart): AnswerPart {
  switch (part.type) {
    case 'text':
      return { text: verbatim(part.text) };
    case 'thinking':
      return { thinking: verbatim(part.text) };
    case 'tool_call': {
      // Arguments that were no object could not be used; the call has its recorded result all the same.
      const args = isJsonObject(part.args) ? part.args : {};
      return { call: { id: part.id, name: part.name, args: JSON.parse(verbatimJson(args)) as typeof args } };
    }
  }
}

// Scripts have templates, `{{ text }}` and the like, and a recorded answer may be about some. Between
// two braces goes a template for a match that never is, so that it is filled with nothing.
function verbatim(text: string): string {
  return text.replace(/\{(?=\{)/g, '{{{match.0}}');
}

function verbatimJson(args: unknown): string {
  return JSON.stringify(args, (_key, value: unknown) => (typeof value === 'string' ? verbatim(value) : value));
}
