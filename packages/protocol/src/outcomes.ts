// Outcomes: how a turn and a task ended. Exactly one each.
//
//   what happened                                   work was done in this turn    ending
//   no more calls                                   –                             done
//   provider failed, empty answer, limits, …        yes                           incomplete(failure)
//   the same                                        no                            error(failure)
//   the user aborted                                yes / no                      incomplete / cancelled
//   it waits for a remote tool                      –                             suspended
//   a stopping server leaves a question open        –                             suspended
//   the caller gave up waiting for that tool        –                             cancelled

import type { Failure } from './failures.ts';
import type { Usage } from './messages.ts';

export type TurnOutcome =
  | { readonly status: 'done' }
  | { readonly status: 'incomplete' | 'error'; readonly failure: Failure }
  | { readonly status: 'cancelled' }
  | { readonly status: 'suspended' };

export type TaskOutcome = {
  readonly status: 'finished' | 'failed' | 'cancelled';
  readonly failure?: Failure;
  /** The worker's own words: what it submitted, or else the last thing it said. */
  readonly summary: string;
  readonly usage: Usage;
  readonly cost?: number;
  /** Calls that were not allowed, where the worker stopped for want of them. */
  readonly refused: readonly string[];
};

export function failedTurn(failure: Failure, workDone: boolean): TurnOutcome {
  if (failure.kind === 'aborted' && !workDone) return { status: 'cancelled' };
  return { status: workDone ? 'incomplete' : 'error', failure };
}
