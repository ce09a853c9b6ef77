// How a run ended, as its last event tells it.

import type { Event } from '@drover/core/events';
import { describe, DroverError, type Failure } from '@drover/core/failure';
import type { Delivered, TaskRow, TaskStatus } from '@drover/core/task/run';
import { rowsOf, type RunState } from './state.ts';

export type RunEnd = Extract<Event, { readonly type: 'run_end' }>;

export type RunEnding = {
  readonly failure: Failure | undefined; // what ended the run as a whole
  readonly rows: readonly TaskRow[];
};

/** What is known only at the end; the rest is in the state. */
export type Ended = { readonly failure?: Failure; readonly answer?: string; readonly delivered?: Delivered };

export function runEnd(
  state: RunState,
  { failure, answer, delivered }: Ended,
  exitCodeOf: (ending: RunEnding) => number,
): RunEnd {
  const rows = rowsOf(state);
  const { usage, cost } = state;
  return {
    type: 'run_end',
    outcome: outcomeOf(failure, rows),
    exitCode: exitCodeOf({ failure, rows }),
    ...(failure !== undefined && { failure, reason: describe(failure) }),
    tasks: rows.map((row) => ({ ...row, ...branchOf(row, delivered) })),
    usage,
    ...(cost !== undefined && { cost }),
    ...(delivered !== undefined && { delivered }),
    ...(answer !== undefined && answer !== '' && { answer }),
  };
}

/** The task needs nothing more. */
export function isGood(status: TaskStatus): boolean {
  return status === 'landed' || status === 'done';
}

export function asFailure(error: unknown): Failure {
  if (error instanceof DroverError) return error.failure;
  return { kind: 'internal', message: error instanceof Error ? error.message : String(error) };
}

function outcomeOf(failure: Failure | undefined, rows: readonly TaskRow[]): RunEnd['outcome'] {
  if (failure?.kind === 'aborted') return 'cancelled';
  const isPartly = rows.some(({ status }) => isGood(status));
  if (failure?.kind === 'plan.declined' && !isPartly) return 'cancelled';
  if (failure !== undefined) return isPartly ? 'incomplete' : 'error';
  return rows.every(({ status }) => isGood(status)) ? 'done' : 'incomplete';
}

function branchOf({ task, branch }: TaskRow, delivered: Delivered | undefined): Pick<TaskRow, 'branch'> {
  const name = delivered?.renamed?.[task] ?? branch;
  return name === undefined ? {} : { branch: name };
}
