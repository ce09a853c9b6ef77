// Resumes an interrupted run in its own repository.
//
// Guarantees
//   1. Gates, delivery and repository stay as they were, because earlier tasks landed by those rules.
//   2. Models of the roles, worker count, steps per task, budget and time limit can be set anew. Budget and time limit
//      count from the start of the run, so they must exceed what it has used.
//   3. A plan that the user has not approved is executed only with a terminal to ask on, or with --yes.
//   4. Permission rules and view options are never stored. The user passes them each time.

import { existsSync } from 'node:fs';
import type { PlannedTask } from '@drover/protocol/plan';
import { openSharedOnBatchResume } from '../batch/shared.ts';
import { openDiagnostics } from '../diagnostics.ts';
import type { NamedRun } from '../result/run-store.ts';
import { openSecretRedactor } from '../secrets/own-secrets.ts';
import { openRunBusJournal, type RunPlace, tellRunEvents } from './open-run.ts';
import { canRunResume, lacksRunApproval } from '@drover/coordinator/run/runs';
import type { RunHistory } from '@drover/coordinator/run/history';
import { openRepository, type Repository } from '@drover/coordinator/git/repository';
import { taskRowsOfState } from '@drover/coordinator/view/state';
import type { Failure } from '@drover/protocol/failures';
import { UsageError } from '@drover/core/errors';
import { isDone, modelRolesOfRun, type RunSettings, type TaskRow } from '@drover/protocol/run';
import { gitProcessEnvironment } from '@drover/core/tools/process/environment';
import { changeModelRoles, type RolePlace, modelRoleSettings } from '../model/model-roles.ts';
import type { Io } from '../io.ts';
import { shortenStoredId } from '../history/id.ts';
import { checkJournalUsable } from '../history/journal.ts';
import { type KeptRun, readRunState } from '../history/run.ts';
import type { Budget } from '../start/quantities.ts';
import { loadSettings, type Settings, stateFolder } from '../start/settings.ts';
import { countText, dollarsText, durationText, totalTokens } from '../views/text/figures.ts';
import { textOnOneLine } from '../views/text/terminal-text.ts';
import { loadExtensions } from '../extensions/load.ts';
import { Person } from '../terminal/person.ts';
import { openTrustedProject } from '../trust/open-project.ts';
import type { RunArgs } from './run-options.ts';
import { type Start, startRun } from './start-run.ts';

const REASON_COLUMNS = 80;
const NAMED_MAX = 4;

export type Resumed = {
  readonly id: string;
  /** The run, if the command has read it. */
  readonly kept?: KeptRun;
  /** Tasks that the user retries, chosen from the run; without it the run must have something left to do. */
  readonly retry?: (run: NamedRun) => readonly PlannedTask[];
};

export async function resumeRun(args: RunArgs, resumed: Resumed, io: Io): Promise<number> {
  const kept = resumed.kept ?? (await readRunState(stateFolder(io), resumed.id));
  checkJournalUsable(kept);
  if (!args.yes && !Person.isAt(io)) checkPlanApproved(kept, resumed.retry === undefined ? 'resume' : 'retry');
  const start = await prepareResumedRun(args, { ...resumed, kept }, io);
  using _ = start.shared;
  return (await startRun(args, start, io)).exitCode;
}

/** All that a resumed run starts with. Tasks to retry are reopened in its journal when this resolves. */
export async function prepareResumedRun(
  args: RunArgs,
  { id, retry, ...given }: Resumed,
  io: Io,
): Promise<ResumedStart> {
  const home = stateFolder(io);
  const kept = given.kept ?? (await readRunState(home, id));
  checkJournalUsable(kept);
  const short = shortenStoredId(home, id);
  const past = retry === undefined ? checkRunResumable(kept, short) : requireBegunRun(kept, short);
  const reopened = retry?.({ ...kept, short, settings: past.settings }) ?? [];
  const { repository: top } = past.settings;
  if (!existsSync(top)) throw new UsageError(`${top}, the repository of run ${short}, is gone`);
  const trust = { trustsAll: args['trust-project'] };
  const settings = await loadSettings(io, top, trust);
  const run = resumedRunSettings(args, past.settings, { settings, top, io });
  checkResumedLimits(run, {
    kept,
    past,
    command: `drover ${retry === undefined ? 'resume' : 'retry'} ${short}`,
    short,
  });
  const repository = repositoryAsItWas(await openRepository(top, gitProcessEnvironment(io.env)), past.settings);
  if (reopened.length > 0) await reopenTasks({ home, run: id, read: kept }, reopened, { settings, io });
  const shared = await openSharedOnBatchResume(id, { home, cap: run.cap });
  const planned = past.plans.flatMap(({ tasks }) => tasks);
  const project = await openTrustedProject(io, top, trust);
  const extensions = await loadExtensions(project, settings, io);
  return { id, run, tasks: undefined, planned, read: kept, settings, repository, project, extensions, shared };
}

type ResumedStart = Start & { readonly shared: Awaited<ReturnType<typeof openSharedOnBatchResume>> };

async function reopenTasks(
  place: RunPlace,
  tasks: readonly PlannedTask[],
  { settings, io }: { readonly settings: Settings; readonly io: Io },
): Promise<void> {
  const diagnostics = await openDiagnostics(io, undefined);
  const journal = await openRunBusJournal(place, { diagnostics, io });
  try {
    await tellRunEvents(place.run, openSecretRedactor(settings), { journal, event: { type: 'tasks_reopened', tasks } });
  } finally {
    await journal.close();
    await diagnostics.close();
  }
}

/** Throws UsageError if a resume without a terminal would execute a plan that the user has not approved. */
function checkPlanApproved({ id, home, past, state }: KeptRun, command: 'resume' | 'retry'): void {
  if (past === undefined || past.isOver || !lacksRunApproval(past)) return;
  const short = shortenStoredId(home, id);
  const why = state.end?.failure?.kind === 'plan.declined' ? 'was declined' : 'has not been approved';
  throw new UsageError(
    `the plan of run ${short} ${why}, and there is no terminal to ask on; approve it with: drover ${command} ${short} --yes`,
  );
}

function requireBegunRun({ past }: KeptRun, short: string): RunHistory {
  if (past === undefined) throw new UsageError(`run ${short} has not begun; begin one with: drover run "…"`);
  return past;
}

function checkRunResumable(kept: KeptRun, short: string): RunHistory {
  const { state } = kept;
  const past = requireBegunRun(kept, short);
  if (past.isOver) throw new UsageError(`run ${short} is done; look at it with: drover show ${short}`);
  if (canRunResume(state)) return past;
  const bad = taskRowsOfState(state).filter(({ status }) => !isDone(status));
  const named = bad
    .slice(0, NAMED_MAX)
    .map((row) => `${row.task}: ${textOnOneLine(reopenedTaskReason(row), REASON_COLUMNS)}`);
  const more = bad.length > NAMED_MAX ? [`${bad.length - NAMED_MAX} more`] : [];
  throw new UsageError(
    `run ${short} has ended, and resuming it would not help the tasks that did not land (${[...named, ...more].join('; ')}); drover show ${short} says more; try them again with: drover retry ${short}`,
  );
}

function reopenedTaskReason({ status, reason }: TaskRow): string {
  return reason ?? status.replace('_', ' ');
}

function resumedRunSettings(args: RunArgs, before: RunSettings, place: RolePlace): RunSettings {
  const { workers, budget, timeout, steps } = args;
  const { model: _, models: __, ...others } = before;
  return {
    ...others,
    ...modelRoleSettings(changeModelRoles(args, modelRolesOfRun(before), place)),
    ...(args['allow-red-base'] && { allowRedBase: true }),
    ...(workers !== undefined && { workers }),
    ...(budget !== undefined && { cap: budget }),
    ...(timeout !== undefined && { timeoutMs: timeout }),
    taskLimits: { ...before.taskLimits, ...(steps !== undefined && { stepsMax: steps }) },
  };
}

type Run = {
  readonly kept: KeptRun;
  readonly past: RunHistory;
  readonly command: string; // what the user types again, with more
  readonly short: string;
};

/** Throws UsageError if a limit is already reached: the resumed run would stop at once. */
function checkResumedLimits({ cap, timeoutMs }: RunSettings, { kept: { state }, past, command, short }: Run): void {
  const ended = state.end === undefined ? [] : [state.end.failure, ...state.end.tasks.map(({ failure }) => failure)];
  if (cap !== undefined) {
    const { usage, cost = 0 } = past.spent.total;
    const spent = 'usd' in cap ? cost : totalTokens(usage);
    const isReached =
      isSameBudget(cap, past.settings.cap) && ended.some((failure) => isLimitFailure(failure, 'budget'));
    if (isReached || spent >= budgetAmount(cap))
      throw new UsageError(
        `run ${short} has spent ${inUnitOfBudget(cap, spent)}, and its budget of ${inUnitOfBudget(cap, budgetAmount(cap))} allows no further request; resume with more: ${command} --budget ${doubleBudget(cap)}`,
      );
  }
  if (timeoutMs !== undefined && past.activeMs >= timeoutMs)
    throw new UsageError(
      `run ${short} has worked for ${durationText(past.activeMs)}, and its time limit is ${durationText(timeoutMs)}; resume with more: ${command} --timeout ${Math.ceil((past.activeMs + timeoutMs) / 60_000)}m`,
    );
}

function isSameBudget(a: Budget, b: Budget | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function isLimitFailure(failure: Failure | undefined, limit: 'budget'): boolean {
  return failure?.kind === 'limit.reached' && failure.limit === limit;
}

function budgetAmount(cap: Budget): number {
  return 'usd' in cap ? cap.usd : cap.tokens;
}

function inUnitOfBudget(cap: Budget, amount: number): string {
  return 'usd' in cap ? dollarsText(amount) : `${countText(amount)} tokens`;
}

function doubleBudget(cap: Budget): string {
  return 'usd' in cap ? `${cap.usd * 2}usd` : `${cap.tokens * 2}tok`;
}

/** The repository at the commit and branch where the run began, even if the user has moved on. */
function repositoryAsItWas(now: Repository, { base, branch }: RunSettings): Repository {
  const { branch: _today, ...repository } = now;
  return { ...repository, head: base, ...(branch !== undefined && { branch }) };
}
