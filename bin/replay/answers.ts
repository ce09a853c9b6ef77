// Turns recorded answers into answers of a scripted model.

import { isJsonObject } from '@drover/protocol/json';
import type { AssistantMessage, AssistantPart, Stop } from '@drover/protocol/messages';
import type { Answer, AnswerPart } from '@drover/rehearsal/script';

const STOPS: Readonly<Record<Stop, NonNullable<Answer['stop']>>> = {
  stop: 'end',
  tool_calls: 'calls',
  length: 'length',
  pause: 'pause',
  refusal: 'refusal',
  // The journal stores no such answer.
  error: 'end',
  aborted: 'end',
};

export function replayedAnswer({ content, stop, usage }: AssistantMessage): Answer {
  const { input, output, cacheRead, cacheWrite } = usage;
  return { parts: content.map(replayedPart), stop: STOPS[stop], usage: { input, output, cacheRead, cacheWrite } };
}

function replayedPart(part: AssistantPart): AnswerPart {
  switch (part.type) {
    case 'text':
      return { text: verbatimForScript(part.text) };
    case 'thinking':
      return { thinking: verbatimForScript(part.text) };
    case 'tool_call': {
      // Arguments that were not objects were unusable; the call has its recorded result anyway.
      const args = isJsonObject(part.args) ? part.args : {};
      return { call: { id: part.id, name: part.name, args: JSON.parse(verbatimJsonForScript(args)) as typeof args } };
    }
  }
}

// Scripts have templates such as `{{ text }}`, and a recorded answer may contain the same text. A template that is
// always empty is put between two braces, so that the braces stay.
function verbatimForScript(text: string): string {
  return text.replace(/\{(?=\{)/g, '{{{match.0}}');
}

function verbatimJsonForScript(args: unknown): string {
  return JSON.stringify(args, (_key, value: unknown) => (typeof value === 'string' ? verbatimForScript(value) : value));
}
