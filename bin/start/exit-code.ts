// The table of exit codes, and which ending has which.

import { EXIT_CODES, type TurnOutcome } from '@drover/protocol/outcomes';
import { type Failure, traitsOfFailure } from '@drover/protocol/failures';
import { type TaskRow, isDone } from '@drover/protocol/run';
import type { StopCause } from '../io.ts';

export const exitCode = EXIT_CODES;

/** The description in the help. */
export const exitCodeWords: readonly (readonly [code: number, meaning: string])[] = [
  [exitCode.done, 'done'],
  [exitCode.internal, 'internal error'],
  [exitCode.usage, 'usage or config invalid'],
  [exitCode.incomplete, 'incomplete: of a run, some tasks failed or a gate left them out'],
  [exitCode.gate, 'a gate fails: of a run, nothing landed'],
  [exitCode.conflict, 'unresolved conflicts'],
  [exitCode.budget, 'budget reached'],
  [exitCode.deadline, 'deadline reached'],
  [exitCode.blocked, 'blocked by permission'],
  [exitCode.provider, 'provider unavailable or refuses'],
  [exitCode.interrupted, 'SIGINT'],
  [exitCode.terminated, 'SIGTERM, SIGHUP or closed output'],
];

export type Ending = {
  readonly outcome: TurnOutcome;
  /** The last calls of the turn were refused, so the agent stopped for lack of permission. */
  readonly refused: boolean;
  readonly stop: StopCause | undefined;
};

export function exitCodeOfEnding({ outcome, refused, stop }: Ending): number {
  switch (outcome.status) {
    case 'done':
      return refused ? exitCode.blocked : exitCode.done;
    case 'incomplete':
    case 'error': {
      if (outcome.failure.kind === 'gate.failed') return exitCode.gate;
      const code = outcome.failure.kind === 'aborted' ? exitCodeOfStop(stop) : exitCodeOfFailure(outcome.failure);
      // A budget, a deadline or a provider ends any turn; an agent that reaches its limits was blocked.
      return refused && code === exitCode.incomplete ? exitCode.blocked : code;
    }
    case 'cancelled':
      return exitCodeOfStop(stop);
    case 'suspended':
      return exitCode.incomplete;
  }
}

/** The exit code of a whole run. */
export type RunEnding = {
  readonly failure: Failure | undefined;
  readonly rows: readonly TaskRow[];
  readonly stop: StopCause | undefined;
  readonly mayBePartial: boolean;
};

export function exitCodeOfRun({ failure, rows, stop, mayBePartial }: RunEnding): number {
  if (failure?.kind === 'aborted') return exitCodeOfStop(stop);
  if (failure?.kind === 'gate.failed') return exitCode.gate;
  if (failure !== undefined) return exitCodeOfFailure(failure);
  const bad = rows.filter(({ status }) => !isDone(status));
  if (bad.length === 0) return exitCode.done;
  // Landed work passed every gate, so a result with landed tasks is green even if gates left others out.
  const isEmpty = !rows.some(({ status }) => status === 'landed');
  if (isEmpty && bad.some(({ status }) => status === 'gate_failed')) return exitCode.gate;
  if (bad.some(({ status }) => status === 'conflict')) return exitCode.conflict;
  const told = bad.flatMap(({ failure: cause }) => (cause === undefined ? [] : [cause]));
  // A task stopped by the failure of another has no cause of its own.
  const causes = told.filter((cause) => !isFailureOfOthers(cause));
  const isProviders = causes.length === told.length || causes.every(({ kind }) => kind.startsWith('provider.'));
  const codes = new Set(causes.map(exitCodeOfFailure));
  if (codes.has(exitCode.budget)) return exitCode.budget;
  const [only] = codes;
  // If all tasks have one cause, it is the cause of the run: provider, permission or time. If some tasks were never
  // tried, only a provider's failure counts as the cause of all.
  if (only !== undefined && codes.size === 1 && bad.length === rows.length && isProviders) return only;
  return mayBePartial ? exitCode.done : exitCode.incomplete;
}

function isFailureOfOthers(failure: Failure): boolean {
  return failure.kind === 'limit.reached' && failure.limit === 'failures';
}

export function exitCodeOfStop(stop: StopCause | undefined): number {
  return stop === undefined || stop === 'SIGINT' ? exitCode.interrupted : exitCode.terminated;
}

export function exitCodeOfFailure(failure: Failure): number {
  if (failure.kind === 'aborted') return failure.by === 'user' ? exitCode.interrupted : exitCode.terminated;
  return exitCode[traitsOfFailure(failure).exit];
}
