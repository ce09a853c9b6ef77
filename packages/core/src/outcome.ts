// How a turn ended. Exactly one per turn.
//
//   what happened                                   work was done in this turn    ending
//   no more calls                                   –                             done
//   provider failed, empty answer, limits, …        yes                           incomplete(failure)
//   the same                                        no                            error(failure)
//   the user aborted                                yes / no                      incomplete / cancelled
//   it waits for a remote tool                      –                             suspended
//   a stopping server leaves a question open        –                             suspended
//   nobody waits for that tool any more             –                             cancelled

import type { Failure } from './failure.ts';

export type TurnOutcome =
  | { readonly status: 'done' }
  | { readonly status: 'incomplete' | 'error'; readonly failure: Failure }
  | { readonly status: 'cancelled' }
  | { readonly status: 'suspended' };

export function failedTurn(failure: Failure, workDone: boolean): TurnOutcome {
  if (failure.kind === 'aborted' && !workDone) return { status: 'cancelled' };
  return { status: workDone ? 'incomplete' : 'error', failure };
}
