// How a run ended, as its last event tells it.

import type { Event } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError } from '@drover/core/errors';
import { isDone, type Delivered, type LineCount, type TaskRow } from '@drover/protocol/run';
import { gitChangeCounts } from '../git/diff.ts';
import type { Git } from '../git/git.ts';
import type { MergeTrain } from '../merge/train.ts';
import { isUnchangedInView, taskRowsOfState, type RunState } from '../view/state.ts';

export type RunEnd = Extract<Event, { readonly type: 'run_end' }>;

export type RunEnding = {
  readonly failure: Failure | undefined; // what ended the run as a whole
  readonly rows: readonly TaskRow[];
};

/** Facts known only at the end; the rest is in the state. */
export type Ended = {
  readonly failure?: Failure;
  readonly answer?: string;
  readonly delivered?: Delivered;
  readonly lines?: ReadonlyMap<string, LineCount>; // by commit
};

export function runEnd(
  state: RunState,
  { failure, answer, delivered, lines }: Ended,
  exitCodeOf: (ending: RunEnding) => number,
): RunEnd {
  const rows = failure?.kind === 'gate.failed' ? isUnderRedGateOfRun(state, failure) : taskRowsOfState(state);
  const { usage, cost } = state;
  return {
    type: 'run_end',
    outcome: outcomeOfRun(failure, rows),
    exitCode: exitCodeOf({ failure, rows }),
    ...(failure !== undefined && { failure, reason: describe(failure) }),
    tasks: rows.map((row) => ({ ...row, ...branchOfTaskRow(row, delivered), ...linesOfTaskRow(row, lines) })),
    usage,
    ...(cost !== undefined && { cost }),
    ...(delivered !== undefined && { delivered }),
    ...(answer !== undefined && answer !== '' && { answer }),
  };
}

/** The lines that each task changed. Empty if git fails: the run ends in the same way without them. */
export async function countLandedLines(state: RunState, git: Git): Promise<Pick<Ended, 'lines'>> {
  const commits = taskRowsOfState(state).flatMap(({ commit }) => commit ?? []);
  return gitChangeCounts(git, commits).then(
    (lines) => ({ lines }),
    (error: unknown) => {
      if (error instanceof DroverError) return {};
      throw error;
    },
  );
}

function linesOfTaskRow({ commit = '' }: TaskRow, lines: Ended['lines']): Pick<TaskRow, 'lines'> {
  const count = lines?.get(commit);
  return count === undefined ? {} : { lines: count };
}

/**
 * A gate of the run that fails on its result, which may be its base. Empty where all pass, and where no task succeeded.
 */
export async function failureOfRunResult(
  state: RunState,
  train: MergeTrain | undefined,
): Promise<Pick<Ended, 'failure'>> {
  const rows = taskRowsOfState(state);
  // A plan without tasks, as of a batch that selects no file, has no result; an answer without a plan has one.
  const hasResult = rows.length === 0 ? state.plans.length === 0 : rows.some(({ status }) => isDone(status));
  const verdict = hasResult ? await train?.verdict() : undefined;
  if (verdict === undefined || verdict.passed) return {};
  const { command, reason: output } = verdict;
  const isBase = state.landed.length === 0;
  return { failure: { kind: 'gate.failed', command, output, ...(isBase && { unchanged: true }) } };
}

/** A task that changed nothing has failed, too: the gate is red on what it left as it was. */
function isUnderRedGateOfRun(state: RunState, failure: Failure): readonly TaskRow[] {
  return taskRowsOfState(state).map((row): TaskRow => {
    const task = state.tasks.get(row.task);
    const isHit = task !== undefined && isUnchangedInView(task);
    return isHit ? { ...row, status: 'gate_failed', reason: describe(failure), failure } : row;
  });
}

export function runErrorOf(error: unknown): DroverError {
  return error instanceof DroverError ? error : new DroverError(runFailureOf(error), { cause: error });
}

const NOT_DELIVERED: readonly Failure['kind'][] = ['checkout.changed', 'dependencies.changed', 'aborted'];

/** Whether there is work to deliver, and nothing forbids it. */
export function mayDeliverRun(state: RunState, failure: Failure | undefined): boolean {
  const hasWork = state.landed.length > 0 || taskRowsOfState(state).some(({ commit }) => commit !== undefined);
  return hasWork && (failure === undefined || !NOT_DELIVERED.includes(failure.kind));
}

export function runFailureOf(error: unknown): Failure {
  if (error instanceof DroverError) return error.failure;
  return { kind: 'internal', message: error instanceof Error ? error.message : String(error) };
}

function outcomeOfRun(failure: Failure | undefined, rows: readonly TaskRow[]): RunEnd['outcome'] {
  if (failure?.kind === 'aborted') return 'cancelled';
  if (failure?.kind === 'gate.failed' || failure?.kind === 'base.failed') return 'incomplete';
  const isPartly = rows.some(({ status }) => isDone(status));
  if (failure?.kind === 'plan.declined' && !isPartly) return 'cancelled';
  if (failure !== undefined) return isPartly ? 'incomplete' : 'error';
  return rows.every(({ status }) => isDone(status)) ? 'done' : 'incomplete';
}

function branchOfTaskRow({ task, branch }: TaskRow, delivered: Delivered | undefined): Pick<TaskRow, 'branch'> {
  const name = delivered?.renamed?.[task] ?? branch;
  return name === undefined ? {} : { branch: name };
}
