// Outcomes: how a turn and a task end, and the exit codes of commands. Each turn and task has exactly one outcome.
//
//   event                                           work was done in this turn    outcome
//   no more calls                                   –                             done
//   provider failed, empty answer, limits, …        yes                           incomplete(failure)
//   the same                                        no                            error(failure)
//   the user aborted                                yes / no                      incomplete / cancelled
//   the turn waits for a remote tool                –                             suspended
//   a stopping server leaves a question open        –                             suspended
//   the caller stopped waiting for the remote tool  –                             cancelled

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
  /** The summary that the worker submitted, or its last message. */
  readonly summary: string;
  readonly usage: Usage;
  readonly cost?: number;
  /** Denied calls, if the worker stopped because it needed them. */
  readonly refused: readonly string[];
};

export function failedTurnOutcome(failure: Failure, workDone: boolean): TurnOutcome {
  if (failure.kind === 'aborted' && !workDone) return { status: 'cancelled' };
  return { status: workDone ? 'incomplete' : 'error', failure };
}

/** Exit codes by name. `run_end` carries one of them too. */
export const EXIT_CODES = {
  done: 0,
  internal: 1,
  usage: 2,
  incomplete: 3,
  gate: 4,
  conflict: 5,
  budget: 6,
  deadline: 7,
  blocked: 8,
  provider: 9,
  interrupted: 130,
  terminated: 143,
} as const;

export type ExitName = keyof typeof EXIT_CODES;
