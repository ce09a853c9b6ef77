// Moves an agent to the next model of its list when the current one stays unavailable after its retries.

import { describe } from '@drover/protocol/failures';
import { DroverError } from '../errors.ts';
import { isModelUnavailable, labelOfModel } from '../model/fallback.ts';
import { type Agent, ATTEMPTS_MAX, emitTurnEvent, type Turn } from './turn.ts';

/** Returns true if the caller must ask again: the agent has moved, and the move was emitted. */
export function fallBackAgent(agent: Agent, turn: Turn, error: unknown): boolean {
  if (!(error instanceof DroverError) || !isModelUnavailable(error.failure)) return false;
  const { failure } = error;
  const from = labelOfModel(agent.routes.current);
  const next = agent.routes.next();
  if (next === undefined) return false;
  turn.patience.left = ATTEMPTS_MAX;
  // The calibration belongs to the other model.
  agent.conversation.recalibrate({});
  emitTurnEvent(agent, turn, {
    type: 'model_fallback',
    from,
    to: labelOfModel(next),
    failure,
    reason: describe(failure),
  });
  return true;
}
