// The loop: ask the model, run what it asks for, tell it what came of that; until it asks for nothing.
//
// It prints nothing and knows no terminal, no file and no thread: everything it needs is handed in, and
// what happens goes out as events. It returns how the turn ended, which is for the session to tell; it
// throws only what is a bug.

import { DroverError, type Failure } from '../failure.ts';
import type { CallPart, ToolResult } from '../model/protocol.ts';
import { failedTurn, type TurnOutcome } from '../outcome.ts';
import { takeAnswer } from './answer.ts';
import { settleCalls } from './calls.ts';
import { failureOf } from './limits.ts';
import { addMessage, emit, type Agent, type Turn } from './turn.ts';

const UNKNOWN_IN_A_ROW_MAX = 3;

export async function runTurn(agent: Agent, turn: Turn, signal: AbortSignal): Promise<TurnOutcome> {
  try {
    while (true) {
      checkLimits(agent, turn);
      turn.steps += 1;
      const answer = await takeAnswer(agent, turn, signal);
      if (answer === undefined) continue;

      const calls = answer.content.filter((part) => part.type === 'tool_call');
      if (calls.length === 0) {
        if (answer.stop === 'pause') continue;
        if (answer.stop === 'length') throw limit('output-tokens', 'the answer was cut off at the output limit');
        return { status: 'done' };
      }
      const settled = await settleCalls({ ...agent.bench, emit: (event) => emit(agent, turn, event) }, calls, signal);
      turn.denials.push(...settled.denials);
      if (settled.pending.length > 0 && !signal.aborted) {
        turn.open = { calls, settled };
        emit(agent, turn, { type: 'awaiting_tool_execution', calls: settled.pending });
        return { status: 'suspended' };
      }
      closeCalls(agent, turn, calls, settled.results);
      if (signal.aborted) throw new DroverError(failureOf(signal));
      turn.unknownInARow = settled.unknownOnly ? turn.unknownInARow + 1 : 0;
      if (turn.unknownInARow >= UNKNOWN_IN_A_ROW_MAX)
        throw new DroverError({ kind: 'tool.unknown', limit: UNKNOWN_IN_A_ROW_MAX });
    }
  } catch (error) {
    if (error instanceof DroverError) return failedTurn(error.failure, turn.answers > 0);
    throw error;
  }
}

/** All results as one message, in the order of the calls. A call without one was interrupted. */
export function closeCalls(
  agent: Agent,
  turn: Turn,
  calls: readonly CallPart[],
  results: readonly (ToolResult | undefined)[],
): void {
  const whole = calls.map(
    (call, at): ToolResult =>
      results[at] ?? { id: call.id, name: call.name, output: 'Interrupted: no result came.', isError: true },
  );
  turn.open = undefined;
  addMessage(agent, turn, { role: 'tool', results: whole });
}

function checkLimits(agent: Agent, turn: Turn): void {
  const { stepsMax, outputTokensMax } = agent.limits;
  if (turn.steps >= stepsMax) throw limit('steps', `the limit of ${stepsMax} steps is reached`);
  if (outputTokensMax !== undefined && turn.outputTokens >= outputTokensMax) {
    throw limit('output-tokens', `the limit of ${outputTokensMax} output tokens is reached`);
  }
}

function limit(name: Extract<Failure, { kind: 'limit.reached' }>['limit'], message: string): DroverError {
  return new DroverError({ kind: 'limit.reached', limit: name, message });
}
