// The exit codes, and which ending has which: the one table of them.

import type { Failure } from '@drover/core/failure';
import type { TurnOutcome } from '@drover/core/outcome';
import type { StopCause } from './io.ts';

export const exitCode = {
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

/** For people, in the help. */
export const exitCodeWords: readonly (readonly [code: number, meaning: string])[] = [
  [exitCode.done, 'done'],
  [exitCode.internal, 'internal error'],
  [exitCode.usage, 'usage or config invalid'],
  [exitCode.incomplete, 'incomplete'],
  [exitCode.gate, 'a gate fails'],
  [exitCode.budget, 'budget reached'],
  [exitCode.deadline, 'deadline reached'],
  [exitCode.blocked, 'blocked by permission'],
  [exitCode.provider, 'provider unavailable or refuses'],
  [exitCode.interrupted, 'SIGINT'],
  [exitCode.terminated, 'SIGTERM, SIGHUP or closed output'],
];

export type Ending = {
  readonly outcome: TurnOutcome;
  /** The last calls of the turn were refused, so the agent stopped for want of permission. */
  readonly refused: boolean;
  readonly stop: StopCause | undefined;
};

export function codeOfEnding({ outcome, refused, stop }: Ending): number {
  switch (outcome.status) {
    case 'done':
      return refused ? exitCode.blocked : exitCode.done;
    case 'incomplete':
    case 'error':
      return outcome.failure.kind === 'aborted' ? codeOfStop(stop) : codeOfFailure(outcome.failure);
    case 'cancelled':
      return codeOfStop(stop);
    case 'suspended':
      return exitCode.incomplete;
  }
}

export function codeOfStop(stop: StopCause | undefined): number {
  return stop === undefined || stop === 'SIGINT' ? exitCode.interrupted : exitCode.terminated;
}

export function codeOfFailure(failure: Failure): number {
  switch (failure.kind) {
    case 'aborted':
      return failure.by === 'user' ? exitCode.interrupted : exitCode.terminated;
    case 'provider.unavailable':
    case 'provider.throttled':
    case 'provider.rejected':
    case 'provider.garbled':
    case 'provider.stalled':
    case 'answer.refused':
      return exitCode.provider;
    case 'context.overflow':
    case 'answer.empty':
    case 'answer.paused':
    case 'answer.text_call':
    case 'tool.unknown':
    case 'compaction.failed':
    case 'worker.lost':
    case 'git.failed':
    case 'checkout.changed':
      return exitCode.incomplete;
    case 'internal':
      return exitCode.internal;
    case 'journal.busy':
    case 'journal.damaged':
    case 'journal.newer':
      return exitCode.usage;
    case 'limit.reached':
      return codeOfLimit[failure.limit];
  }
}

const codeOfLimit = {
  steps: exitCode.incomplete,
  'output-tokens': exitCode.incomplete,
  budget: exitCode.budget,
  time: exitCode.deadline,
  idle: exitCode.deadline,
} as const;
