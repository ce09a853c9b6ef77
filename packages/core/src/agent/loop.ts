// The loop: ask the model, run what it asks for, tell it what came of that; until it asks for nothing.
//
// It prints nothing and knows no terminal, no file and no thread: everything it needs is handed in, and
// what happens goes out as events. It returns how the turn ended, which is for the session to tell; it
// throws only what is a bug.
//
// WHAT IS ON THE DISK BEFORE A REQUEST
//   What the turn begins with: nothing is asked for the sake of a message that may yet be lost. The
//   results of the step before go to the disk while the model is asked, because a request leaves nothing
//   behind that anybody would have to know of after a crash. The model remembers nothing. Its answer
//   stands behind the results, so it is not told before they are safe; and what comes of it is a call,
//   which waits for its intent, which stands behind them, too. Were they lost all the same, their calls
//   would be uncertain, as after any crash before a result was safe, and the model would be asked again.
//   What was there before the last request is safe before the next, also where every call was refused and
//   no intent was waited for: so a disk that stands still is outrun by one request and no more.

import { DroverError } from '../errors.ts';
import type { Failure } from '@drover/protocol/failures';
import type { Event } from '@drover/protocol/events';
import type { AssistantPart, CallPart } from '@drover/protocol/messages';
import { failedTurn, type TurnOutcome } from '@drover/protocol/outcomes';
import { keepBoxes } from '../tools/process/boxes.ts';
import { takeAnswer } from './answer.ts';
import { openCalls, resultOf, settleCalls, toolNamed, type OpenCalls } from './calls/calls.ts';
import { failureOf } from './limits.ts';
import { refusedAfter } from './calls/refused-calls.ts';
import { addMessage, emit, type Agent, type Turn } from './turn.ts';

const UNKNOWN_IN_A_ROW_MAX = 3;

export async function runTurn(agent: Agent, turn: Turn, signal: AbortSignal): Promise<TurnOutcome> {
  using _boxes = keepBoxes(agent.bench.context.sandbox);
  let safe: Promise<void> | undefined;
  try {
    while (true) {
      if (turn.open === undefined) {
        checkLimits(agent, turn);
        turn.steps += 1;
        await (safe ?? agent.settled(signal));
        safe = agent.settled(signal);
        // The next request awaits it. A turn that ends before must not leave its rejection unhandled.
        safe.catch(() => undefined);
        const answer = await takeAnswer(agent, turn, signal);
        if (answer === undefined) continue;

        const calls = answer.content.filter(isCall);
        if (calls.length === 0) {
          if (answer.stop === 'pause') continue;
          if (answer.stop === 'length') throw limit('output-tokens', 'the answer was cut off at the output limit');
          return { status: 'done' };
        }
        turn.open = openCalls(calls);
      }
      const next = await settleOpen(agent, turn, turn.open, signal);
      if (next !== 'ask') return { status: next };
    }
  } catch (error) {
    if (error instanceof DroverError) return failedTurn(error.failure, turn.answers > 0);
    throw error;
  }
}

/** All results as one message, in the order of the calls; `suspended` while remote ones have yet to come, or a question is open. */
async function settleOpen(
  agent: Agent,
  turn: Turn,
  open: OpenCalls,
  signal: AbortSignal,
): Promise<'ask' | 'done' | 'suspended'> {
  const bench = { ...agent.bench, settled: agent.settled, emit: (event: Event) => emit(agent, turn, event) };
  const settled = await settleCalls(bench, open, signal);
  const { results, pending, denials, hasRun, unknownOnly, isFinal, isLeftOpen, failure } = settled;
  turn.denials.push(...denials);
  const calls = denials.map(({ subject }) => subject);
  turn.refused = refusedAfter(turn.refused, { step: turn.steps, calls, hasRun });
  if (isLeftOpen && failure === undefined) {
    turn.open = { ...open, results };
    return 'suspended';
  }
  if (pending.length > 0 && !signal.aborted) {
    turn.open = { ...open, results, pending };
    emit(agent, turn, { type: 'awaiting_tool_execution', calls: pending });
    return 'suspended';
  }
  const whole = open.calls.map(
    (call, at) => results[at] ?? resultOf(call, { output: 'Interrupted: no result came.', isError: true }),
  );
  turn.open = undefined;
  addMessage(agent, turn, { role: 'tool', results: whole });
  if (failure !== undefined) throw new DroverError(failure);
  if (isFinal) return 'done';
  if (signal.aborted) throw new DroverError(failureOf(signal));
  turn.unknownInARow = unknownOnly ? turn.unknownInARow + 1 : 0;
  if (turn.unknownInARow < UNKNOWN_IN_A_ROW_MAX) return 'ask';
  throw new DroverError({ kind: 'tool.unknown', limit: UNKNOWN_IN_A_ROW_MAX });
}

/** The model has said its last word, and only the ending is missing. */
export function isAnswered({ conversation, bench }: Agent, turn: Turn): boolean {
  const last = conversation.messages.at(-1);
  if (turn.open !== undefined || turn.answers === 0) return false;
  if (last?.role === 'assistant') return last.stop === 'stop';
  if (last?.role !== 'tool') return false;
  return last.results.some(({ name, isError }) => !isError && toolNamed(bench.tools, name)?.final === true);
}

function isCall(part: AssistantPart): part is CallPart {
  return part.type === 'tool_call';
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
