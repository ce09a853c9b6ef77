// Tools that do nothing: each call gets its recorded result.
//
// A stand-in accepts any arguments and exists for every called name, because the recorded result already contains any
// mistake of the call.

import { toolNamedInCall } from '@drover/core/agent/calls/calls';
import type { Event } from '@drover/protocol/events';
import { sessionTools } from '@drover/core/tools/builtin';
import type { Tool, ToolOutput } from '@drover/core/tools/tool';
import type { RecordedAnswer } from './recording.ts';

export type StandIns = {
  readonly tools: readonly Tool[];
  /** Receives every event, and so learns which call of which answer is in progress. */
  readonly hear: (event: Event) => void;
};

/** `onUnknown` gets each call without a recorded result. */
export function replayToolStandIns(answers: readonly RecordedAnswer[], onUnknown: () => void): StandIns {
  let answersHeard = 0;
  const results = new Map<string, ToolOutput | undefined>(); // callId -> its result
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
  const others = listCalledTools(answers)
    .filter((name) => TOOL_NAME.test(name) && toolNamedInCall(sessionTools, name) === undefined)
    .map((name) => ({ name, description: 'A tool of the recorded session.', schema: { type: 'object' } }));
  return { tools: [...known, ...others].map((tool) => toolStandIn(tool, execute)), hear };
}

// A name that no provider accepts belonged to no tool, so the call is refused as before.
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

function listCalledTools(answers: readonly RecordedAnswer[]): readonly string[] {
  const parts = answers.flatMap(({ message }) => message.content);
  return [...new Set(parts.flatMap((part) => (part.type === 'tool_call' ? [part.name] : [])))];
}

function toolStandIn(
  tool: Pick<Tool, 'name' | 'description' | 'schema'>,
  execute: (callId: string) => Promise<ToolOutput>,
): Tool {
  return {
    ...tool,
    // Tools that run commands look nothing up: neither instructions nor paths.
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
