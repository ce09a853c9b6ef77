// Tools that do nothing: each call gets the result that was recorded for it.
//
// A stand-in takes whatever arguments there are, and is found for every name that was called, because
// what was wrong with a call is in its recorded result already.

import { toolNamed } from '@drover/core/agent/calls/calls';
import type { Event } from '@drover/protocol/events';
import { sessionTools } from '@drover/core/tools/builtin';
import type { Tool, ToolOutput } from '@drover/core/tools/tool';
import type { RecordedAnswer } from './recording.ts';

export type StandIns = {
  readonly tools: readonly Tool[];
  /** Hears every event, which is how it knows which call of which answer is being made. */
  readonly hear: (event: Event) => void;
};

/** `onUnknown` is told of a call of which no result was recorded. */
export function standIns(answers: readonly RecordedAnswer[], onUnknown: () => void): StandIns {
  let answersHeard = 0;
  const results = new Map<string, ToolOutput | undefined>(); // callId -> what it came to
  const hear = (event: Event): void => {
    if (event.type === 'message_end' && event.message.role === 'assistant') answersHeard += 1;
    if (event.type === 'tool_execution_start')
      results.set(event.callId, answers[answersHeard - 1]?.results[event.callIndex]);
  };
  const execute = async (callId: string): Promise<ToolOutput> => {
    const result = results.get(callId);
    if (result !== undefined) return result;
    onUnknown();
    return { output: 'Its result was not recorded.', isError: true };
  };
  const known = sessionTools.map(({ name, description, schema }) => ({ name, description, schema }));
  const others = calledIn(answers)
    .filter((name) => TOOL_NAME.test(name) && toolNamed(sessionTools, name) === undefined)
    .map((name) => ({ name, description: 'A tool of the recorded session.', schema: { type: 'object' } }));
  return { tools: [...known, ...others].map((tool) => standIn(tool, execute)), hear };
}

// A name that no provider accepts was no tool's name, so the call is refused as before.
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

function calledIn(answers: readonly RecordedAnswer[]): readonly string[] {
  const parts = answers.flatMap(({ message }) => message.content);
  return [...new Set(parts.flatMap((part) => (part.type === 'tool_call' ? [part.name] : [])))];
}

function standIn(
  tool: Pick<Tool, 'name' | 'description' | 'schema'>,
  execute: (callId: string) => Promise<ToolOutput>,
): Tool {
  return {
    ...tool,
    // Nothing is looked up for a tool that runs something: neither instructions nor paths.
    access: 'run',
    parse: (input) => ({ ok: true, input }),
    subject: () => '',
    touches: () => [],
    alone: false,
    repeatable: true,
    final: false,
    execute: (_input, { callId }) => execute(callId),
  };
}
