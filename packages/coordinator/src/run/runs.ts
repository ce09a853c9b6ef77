// The runs there are, each as one row: the goal, and how far it has come.

import { isDone } from '@drover/protocol/run';
import type { Recorded } from '@drover/protocol/events';
import { FORMAT_VERSION, type Contents } from '@drover/core/journal/file/format';
import { listJournals } from '@drover/core/journal/listing';
import { isJournalLocked } from '@drover/core/journal/file/lock';
import { sessionTitle } from '@drover/core/journal/sessions';
import type { JsonObject } from '@drover/protocol/json';
import { SUBMIT_PLAN } from '@drover/core/tools/submit-plan';
import { readRunHistory, type RunHistory } from './history.ts';
import { runJournalPath } from './journal.ts';
import { isProgressEnded } from '../view/progress.ts';
import { RunState, type RecordedRunEnd } from '../view/state.ts';
import { tasksToReopen, type TaskStanding } from './tasks.ts';

const FOLDER = 'runs';
const PLAN_EVENTS = new Set(['plan_proposed', 'plan_comment', 'plan_ready']);

export type RunRow = {
  readonly kind: 'run';
  readonly id: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly model: string;
  readonly cwd: string; // the repository
  readonly title: string; // the goal's first line
  readonly tasks: number;
  readonly landed: number; // and what is done without having anything to land
  readonly cost?: number; // US dollars; absent where the price is not known
  /** `open`: it has begun and not ended; `damaged`: the journal can't be read to its end. */
  readonly state: RecordedRunEnd['outcome'] | 'open' | 'empty' | 'damaged' | 'newer';
  /** A resume would have something to do. */
  readonly canGoOn: boolean;
  /** A plan was submitted, and its question not answered: resume asks again. */
  readonly awaitsApproval: boolean;
};

/** All runs, the newest first. */
export function listRuns(home: string): readonly RunRow[] {
  return listJournals(home, { folder: FOLDER, rowOf: listedRunRow });
}

/** True while some process, this one included, is at work on it. */
export function isRunLive(home: string, id: string): boolean {
  return isJournalLocked(`${runJournalPath(home, id)}.lock`);
}

/**
 * Only a run that is done can't, and one that came to its end with nothing left but what failed for good, or a red
 * gate.
 */
export function canRunResume(state: RunState): boolean {
  const { end } = state;
  if (end === undefined) return state.settings !== undefined;
  if (end.outcome !== 'incomplete') return end.outcome !== 'done';
  const isStopped = end.failure !== undefined && end.failure.kind !== 'gate.failed';
  return isStopped || hasRunOpenTask(state);
}

/** The coordinator's call of submit_plan is open, and its plan has not been approved. */
export function doesRunAwaitApproval({ coordinator, plans }: RunHistory): boolean {
  const begun = [...(coordinator?.open?.begun.values() ?? [])];
  return begun.some(({ name, callId }) => name === SUBMIT_PLAN && !plans.some((plan) => plan.callId === callId));
}

/** The user declined the last plan, has not answered it, or waits for the first one over HTTP. */
export function lacksRunApproval({ records, settings }: RunHistory): boolean {
  const last = records.findLast(({ type }) => PLAN_EVENTS.has(type));
  return last === undefined ? settings.approve === true : last.type !== 'plan_ready';
}

/** Whether a task of the last plan is open, or is reopened when the run is resumed. */
function hasRunOpenTask({ plans, tasks }: RunState): boolean {
  const planned = (plans.at(-1)?.tasks ?? []).flatMap((id) => tasks.get(id)?.plan ?? []);
  const standing = new Map(
    [...tasks.values()].map(({ id, state, failure }): [string, TaskStanding] => {
      const isCut = state === 'cancelled' && failure?.kind !== 'task.cancelled';
      const status = isProgressEnded(state) && !isCut ? state : undefined;
      return [id, { status, failure }];
    }),
  );
  const reopened = tasksToReopen(planned, standing);
  return reopened.size > 0 || planned.some(({ id }) => standing.get(id)?.status === undefined);
}

function listedRunRow(id: string, { records, version, damage }: Contents): RunRow {
  const past = readRunHistory(records);
  const state = past?.state ?? new RunState();
  const tasks = [...state.tasks.values()];
  return {
    kind: 'run',
    id,
    startedAt: past?.startedAt ?? '',
    updatedAt: past?.records.at(-1)?.at ?? '',
    model: past?.settings.model ?? '',
    cwd: past?.settings.repository ?? '',
    title: sessionTitle(past?.settings.goal ?? ''),
    tasks: tasks.length,
    landed: tasks.filter((task) => isDone(task.state)).length,
    ...(state.cost !== undefined && { cost: state.cost }),
    state: version > FORMAT_VERSION ? 'newer' : damage === undefined ? listedRunState(past, state) : 'damaged',
    awaitsApproval: past !== undefined && doesRunAwaitApproval(past),
    canGoOn: past !== undefined && damage === undefined && version <= FORMAT_VERSION && canRunResume(state),
  };
}

function listedRunState(past: RunHistory | undefined, { end }: RunState): RunRow['state'] {
  return past === undefined ? 'empty' : (end?.outcome ?? 'open');
}

/** The state of a run by its records. */
export function runStateOfRecords(records: readonly JsonObject[]): RunState {
  const state = new RunState();
  for (const record of records as unknown as readonly Recorded[]) state.take(record);
  return state;
}
