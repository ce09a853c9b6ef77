// The agent loop: asks the model, runs the calls it makes, sends back their results, until it makes no more calls.
//
// Guarantees
//   1. The loop touches no terminal, file or thread. It gets all it needs as arguments and emits events.
//   2. The loop returns how the turn ended; the session emits that ending. It throws only on a bug.
//   3. The message that starts a turn is durable before the first request.
//   4. Results of a step become durable while the next request runs. The request waits only for events of the
//      step before that, so a stalled disk lets at most one more request start.
//   5. A message that the user sends meanwhile joins the conversation after the results of the step, or instead of
//      the end of the turn.
//   6. An answer is shown, and its calls are run, only after all earlier events are durable.
//
// Crash: results that were not durable are lost. Their calls count as uncertain, and the model is asked again.

import { DroverError } from '../errors.ts';
import type { Failure } from '@drover/protocol/failures';
import type { Event } from '@drover/protocol/events';
import type { AssistantPart, CallPart, ToolResult } from '@drover/protocol/messages';
import { failedTurnOutcome, type TurnOutcome } from '@drover/protocol/outcomes';
import { keepProcessBoxes } from '../tools/process/boxes.ts';
import { takeAnswer } from './answer.ts';
import { openCalls, resultOfCall, settleCalls, toolNamedInCall, type OpenCalls } from './calls/calls.ts';
import { turnFailureOfSignal } from './limits.ts';
import { callsRefusedAfter } from './calls/refused-calls.ts';
import { Repeats } from './calls/repeats.ts';
import { addTurnMessage, emitTurnEvent, takeTurnSteering, type Agent, type Turn } from './turn.ts';
import { handled } from '../promises.ts';

const UNKNOWN_IN_A_ROW_MAX = 3;

export async function runTurn(agent: Agent, turn: Turn, signal: AbortSignal): Promise<TurnOutcome> {
  using _boxes = keepProcessBoxes(agent.bench.context.sandbox);
  let safe: Promise<void> | undefined;
  try {
    while (true) {
      if (turn.open === undefined) {
        checkTurnLimits(agent, turn);
        turn.steps += 1;
        await (safe ?? agent.settled(signal));
        safe = agent.settled(signal);
        // The next request awaits it. If the turn ends before, a rejection must not stay unhandled.
        handled(safe);
        const answer = await takeAnswer(agent, turn, signal);
        if (answer === undefined) continue;

        const calls = answer.content.filter(isCallOfAnswer);
        if (calls.length === 0) {
          if (answer.stop === 'pause') continue;
          if (answer.stop === 'length')
            throw turnLimitReached('output-tokens', 'the answer was cut off at the output limit');
          if (takeTurnSteering(agent, turn)) continue;
          return { status: 'done' };
        }
        turn.open = openCalls(calls);
      }
      const next = await settleOpenCalls(agent, { turn, open: turn.open }, signal);
      if (next !== 'ask') return { status: next };
    }
  } catch (error) {
    if (error instanceof DroverError) return failedTurnOutcome(error.failure, turn.answers > 0);
    throw error;
  }
}

/** Adds all results as one message. Returns `suspended` while a remote result or an answer of the user is missing. */
async function settleOpenCalls(
  agent: Agent,
  { turn, open }: { readonly turn: Turn; readonly open: OpenCalls },
  signal: AbortSignal,
): Promise<'ask' | 'done' | 'suspended'> {
  const bench = { ...agent.bench, settled: agent.settled, emit: (event: Event) => emitTurnEvent(agent, turn, event) };
  const settled = await settleCalls(bench, open, signal);
  const { results, pending, denials, hasRun, unknownOnly, isFinal, isLeftOpen, failure } = settled;
  turn.denials.push(...denials);
  const calls = denials.map(({ subject }) => subject);
  turn.refused = callsRefusedAfter(turn.refused, { step: turn.steps, calls, hasRun });
  if (isLeftOpen && failure === undefined) {
    turn.open = { ...open, results };
    return 'suspended';
  }
  if (pending.length > 0 && !signal.aborted) {
    turn.open = { ...open, results, pending };
    emitTurnEvent(agent, turn, { type: 'awaiting_tool_execution', calls: pending });
    return 'suspended';
  }
  const whole = open.calls.map(
    (call, at) => results[at] ?? resultOfCall(call, { output: 'Interrupted: no result came.', isError: true }),
  );
  turn.open = undefined;
  const { results: told, tooOften } = countRepeatedTurnCalls(agent, turn, { calls: open.calls, results: whole });
  addTurnMessage(agent, turn, { role: 'tool', results: told });
  if (failure !== undefined) throw new DroverError(failure);
  if (isFinal && agent.inbox.isEmpty) return 'done';
  if (signal.aborted) throw new DroverError(turnFailureOfSignal(signal));
  if (tooOften !== undefined) throw new DroverError({ kind: 'call.repeated', ...tooOften });
  turn.unknownInARow = unknownOnly ? turn.unknownInARow + 1 : 0;
  if (turn.unknownInARow < UNKNOWN_IN_A_ROW_MAX) {
    takeTurnSteering(agent, turn);
    return 'ask';
  }
  throw new DroverError({ kind: 'tool.unknown', limit: UNKNOWN_IN_A_ROW_MAX });
}

type StepResults = { readonly calls: readonly CallPart[]; readonly results: readonly ToolResult[] };

/** Only workers are watched, because users see the repeats of their own agent. */
function countRepeatedTurnCalls({ bench, conversation }: Agent, turn: Turn, { calls, results }: StepResults) {
  if (bench.worker === 0) return { results };
  turn.repeats ??= Repeats.in(conversation.messages);
  return turn.repeats.take(calls, results);
}

/** Returns true if the turn is complete and only its ending event is missing. */
export function areCallsAnswered({ conversation, bench }: Agent, turn: Turn): boolean {
  const last = conversation.messages.at(-1);
  if (turn.open !== undefined || turn.answers === 0) return false;
  if (last?.role === 'assistant') return last.stop === 'stop';
  if (last?.role !== 'tool') return false;
  return last.results.some(({ name, isError }) => !isError && toolNamedInCall(bench.tools, name)?.final === true);
}

function isCallOfAnswer(part: AssistantPart): part is CallPart {
  return part.type === 'tool_call';
}

function checkTurnLimits(agent: Agent, turn: Turn): void {
  const { stepsMax, outputTokensMax } = agent.limits;
  if (turn.steps >= stepsMax) throw turnLimitReached('steps', `the limit of ${stepsMax} steps is reached`);
  if (outputTokensMax !== undefined && turn.outputTokens >= outputTokensMax) {
    throw turnLimitReached('output-tokens', `the limit of ${outputTokensMax} output tokens is reached`);
  }
}

function turnLimitReached(name: Extract<Failure, { kind: 'limit.reached' }>['limit'], message: string): DroverError {
  return new DroverError({ kind: 'limit.reached', limit: name, message });
}
