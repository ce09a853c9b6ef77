// One attempt at a task: a workspace, a worker, a commit of what it left there.
//
// The worker's events come here unlabelled, and are told as this worker's: its number, its task, the
// attempt, and `index` = worker*100 + callIndex. What comes after the end is nobody's, and is left out.

import type { Question } from '@drover/core/agent/calls/calls';
import { failureOf } from '@drover/core/agent/limits';
import type { Decision, Event } from '@drover/protocol/events';
import { describe, type Failure, FAILURES } from '@drover/protocol/failures';
import { DroverError } from '@drover/core/errors';
import type { Past } from '@drover/core/journal/history';
import type { TaskLink } from '@drover/core/task/link';
import type { Provider } from '@drover/core/model/provider';
import type { PlannedTask } from '@drover/protocol/plan';
import type { RunTask, TaskSpec } from '@drover/core/task/task';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import type { RunAdmission } from '../admission/admission.ts';
import { assignment, beginningOf, firstDifference, type Seed } from '../plan/seed.ts';
import { gateFailure, type TaskGates } from '../merge/task-gates.ts';
import type { Slots, Workspace } from '../slots/slots.ts';

const CALLS_MAX = 100; // in one answer, so that indexes of two workers don't meet

/** What all attempts of a run share. */
export type AttemptContext = {
  readonly run: string;
  readonly startedAt: string; // the date of every commit, so that one made again is the same
  readonly tell: (
    event: Event,
    place: { readonly worker?: number; readonly task?: string; readonly attempt?: number },
  ) => void;
  readonly settled: () => Promise<void>;
  readonly slots: Slots;
  readonly runTask: RunTask;
  readonly admission: RunAdmission;
  readonly provider: Provider;
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision>;
  /** What every TaskSpec of the run holds. */
  readonly common: Pick<TaskSpec, 'model' | 'tools' | 'env' | 'ignore' | 'limits' | 'retry' | 'policy' | 'cacheKey'>;
  readonly outputFolder: (task: string, attempt: number) => string;
  /** The provider has been seen to cache what it is sent. */
  readonly caches: () => boolean;
  /** For what goes into commits, which no event passes on. */
  readonly redact: (text: string) => string;
};

export type AttemptOptions = {
  readonly task: PlannedTask;
  readonly attempt: number;
  readonly worker: number;
  readonly base: string;
  readonly system: string;
  readonly seed: Seed;
  /** Why there is another attempt. */
  readonly before?: string;
  /** It was begun by a process that is gone, and goes on in its workspace if that is still there. */
  readonly goesOn: boolean;
  /** What it has gone through by then, if anything. */
  readonly past?: Past;
  readonly mayFail: boolean; // another attempt would follow
  /** Resolves when it is this worker's turn to begin. */
  readonly turn: (signal: AbortSignal) => Promise<void>;
  /** The worker's answer has begun. */
  readonly onAnswer: () => void;
};

export type AttemptEnd = {
  readonly status: TaskOutcome['status'];
  readonly again: boolean;
  readonly failure?: Failure;
  readonly summary: string;
  readonly commit?: string;
  readonly files: readonly string[];
};

export async function attemptTask(
  context: AttemptContext,
  given: AttemptOptions,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  const { task, attempt, worker, base } = given;
  const place = { worker, task: task.id, attempt };
  let workspace: Workspace | undefined;
  let outcome: TaskOutcome;
  try {
    const again = given.goesOn ? await context.slots.again({ task: task.id, attempt }) : undefined;
    workspace = again ?? (await context.slots.take({ worker, task: task.id, attempt, base, signal }));
    // In another workspace what it remembers of the first one would be untrue.
    const past = again === undefined ? undefined : given.past;
    await given.turn(signal);
    if (signal.aborted) {
      // Nothing was begun in there.
      if (again === undefined) await workspace.release();
      throw new DroverError(failureOf(signal));
    }
    context.tell({ type: 'task_start', base, workspace: workspace.path, seed: given.seed.summary }, place);
    await context.settled();
    outcome = await work(context, given, { workspace, past }, signal);
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    outcome = { ...NOTHING_DONE, status: signal.aborted ? 'cancelled' : 'failed', failure: error.failure };
  }
  return end(context, given, { outcome, workspace }, signal);
}

const NOTHING_DONE = { summary: '', usage: NO_USAGE, refused: [] };

type Where = { readonly workspace: Workspace; readonly past: Past | undefined };

async function work(
  context: AttemptContext,
  given: AttemptOptions,
  { workspace, past }: Where,
  signal: AbortSignal,
): Promise<TaskOutcome> {
  const { task, attempt, worker, system, seed, before } = given;
  const content = assignment({
    worker,
    task,
    attempt,
    workspace: workspace.path,
    isPromptRead: seed.prompts.has(task.prompt),
    ...(before !== undefined && { before }),
  });
  const spec: TaskSpec = {
    ...context.common,
    run: context.run,
    task: task.id,
    attempt,
    worker,
    mode: task.mode,
    system,
    seed: seed.messages,
    begin: past === undefined || past.turn === 0 ? { content } : { resume: true },
    ...(past !== undefined && past.turn > 0 && { past }),
    workspace: workspace.path,
    ...(workspace.sandbox !== undefined && { sandbox: workspace.sandbox }),
    outputFolder: context.outputFolder(task.id, attempt),
  };
  const open = linkOf(context, given);
  try {
    return await context.runTask(spec, open.link, signal);
  } finally {
    open.close();
  }
}

function linkOf(context: AttemptContext, given: AttemptOptions): { link: TaskLink; close: () => void } {
  const { task, attempt, worker, onAnswer } = given;
  const place = { worker, task: task.id, attempt };
  const admission = context.admission.admissionFor(place);
  let isOpen = true;
  let isMeasured = given.past !== undefined;
  const link: TaskLink = {
    emit: (event, step) => {
      if (!isOpen) return;
      if (event.type === 'message_start' && event.role === 'assistant') onAnswer();
      context.tell(relabelled(event, worker), { ...place, ...step });
      if (event.type !== 'usage' || isMeasured) return;
      isMeasured = true;
      const miss = context.caches() && event.usage.cacheRead === 0 ? cacheMiss(given) : undefined;
      if (miss !== undefined) context.tell({ type: 'warning', message: miss }, { ...place, ...step });
    },
    settled: context.settled,
    admission,
    provider: context.provider,
    question: (question, signal) => context.question({ ...question, task: task.id }, signal),
  };
  const close = () => {
    isOpen = false;
    admission.abandon();
  };
  return { link, close };
}

/** What is to be said where a worker's first request found nothing in the cache. */
function cacheMiss({ system, seed }: AttemptOptions): string | undefined {
  if (seed.shared === undefined) return undefined;
  const at = firstDifference(seed.shared, beginningOf(system, seed.messages));
  return at === undefined
    ? 'nothing of what it was seeded with was read from the cache, though it is the coordinator’s to the byte'
    : `nothing of what it was seeded with was read from the cache: it differs from the coordinator’s at byte ${at}`;
}

/** The same event as this worker's. */
export function relabelled(event: Event, worker: number): Event {
  if ('callIndex' in event && 'index' in event) return { ...event, index: worker * CALLS_MAX + event.callIndex };
  return event;
}

async function end(
  context: AttemptContext,
  given: AttemptOptions,
  { outcome, workspace }: { readonly outcome: TaskOutcome; readonly workspace: Workspace | undefined },
  signal: AbortSignal,
): Promise<AttemptEnd> {
  const { task, attempt, worker } = given;
  const { refused, usage, cost } = outcome;
  const summary = context.redact(outcome.summary);
  let { status, failure } = outcome;
  // Whoever was not allowed what the work needs has not done it, whatever it says.
  if (status === 'finished' && refused.length > 0) {
    status = 'failed';
    failure = { kind: 'permission.denied', calls: refused };
  }
  const branch = `drover/${context.run}/${task.id}`;
  const kept = {
    commit: undefined as string | undefined,
    files: [] as readonly string[],
    leftOut: [] as readonly string[],
  };
  let isOver = false;
  try {
    // Also what a failed attempt left: somebody may want it.
    if (workspace !== undefined && task.mode === 'write' && status !== 'cancelled') {
      const message = `${context.redact(task.title)}\n\n${summary}`;
      Object.assign(kept, await workspace.commit({ message, when: context.startedAt, branch }));
      for (const path of kept.leftOut)
        context.tell(
          { type: 'warning', message: `${path} is a git repository of its own, and is left out` },
          { worker, task: task.id, attempt },
        );
    }
    if (status === 'finished' && workspace !== undefined && task.mode === 'write') {
      failure = await gateFailure(gatesOf(context, given, { workspace, commit: kept.commit }), signal);
      if (failure !== undefined) status = 'failed';
    }
    // One that was interrupted stays as it is, to go on.
    isOver = status !== 'cancelled';
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    status = signal.aborted ? 'cancelled' : 'failed';
    failure = error.failure;
  }
  const again = status === 'failed' && given.mayFail && failure !== undefined && FAILURES[failure.kind].reattempt;
  const reason = failure === undefined ? undefined : describe(failure);
  context.tell(
    {
      type: 'task_end',
      status,
      again,
      files: kept.files,
      usage,
      ...(failure !== undefined && { failure }),
      ...(reason !== undefined && { reason }),
      ...(summary !== '' && { summary }),
      ...(kept.commit !== undefined && {
        commit: kept.commit,
        branch,
      }),
      ...(cost !== undefined && { cost }),
    },
    { worker, task: task.id, attempt },
  );
  await context.settled();
  // Not before its end is on the disk: a run that goes on without knowing of it goes on in there.
  const isAsCommitted = status === 'finished' && (task.gates ?? []).length === 0;
  if (isOver) await workspace?.release(isAsCommitted ? 'commit' : undefined);
  return {
    status,
    again,
    summary,
    files: kept.files,
    ...(failure !== undefined && { failure }),
    ...(kept.commit !== undefined && { commit: kept.commit }),
  };
}

function gatesOf(
  { slots, common, outputFolder, tell }: AttemptContext,
  { task, attempt, worker, base }: AttemptOptions,
  left: Pick<TaskGates, 'workspace' | 'commit'>,
): TaskGates {
  const place = { worker, task: task.id, attempt };
  return {
    ...left,
    base,
    task: task.id,
    gates: task.gates ?? [],
    store: slots.store.git,
    env: common.env,
    outputFolder: outputFolder(task.id, attempt),
    emit: (event) => tell(event, place),
  };
}
