// One attempt at a task: a workspace, a worker, and a commit of its changes.
//
// Events of the worker arrive unlabelled. They get the worker's number, its task, the attempt, and `index` =
// worker*100 + callIndex. Events after the end of the attempt are dropped.

import type { Question } from '@drover/core/agent/calls/calls';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import type { Decision, Event } from '@drover/protocol/events';
import { describe, type Failure, FAILURES } from '@drover/protocol/failures';
import { DroverError } from '@drover/core/errors';
import type { Message } from '@drover/protocol/messages';
import type { Past } from '@drover/core/journal/history';
import type { Extensions } from '@drover/core/hooks/extensions';
import { runHooks } from '@drover/core/hooks/hooks';
import type { HookPoint } from '@drover/core/hooks/hook';
import { askForTaskHere } from '@drover/core/task/asking';
import type { Mail, TaskLink } from '@drover/core/task/link';
import { type RunModels, modelRouteOfTask, doTaskModelsShareCache, taskModels } from '@drover/core/task/models';
import type { PlannedTask } from '@drover/protocol/plan';
import type { ToolServers } from '@drover/core/tools/served/tool-servers';
import type { RunTask, TaskSpec } from '@drover/core/task/task';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import { NO_USAGE, spentTokensOf } from '@drover/core/model/spending/usage';
import type { RunAdmission } from '../admission/admission.ts';
import { seedAssignment, beginningOfSeed, firstSeedDifference, type Seed } from '../plan/seed.ts';
import { resumeAttemptFrom, runMovingAttempt } from './moving.ts';
import { taskGateFailure, type TaskGates } from '../merge/task-gates.ts';
import { extensionsOfPlannedTask } from '../plan/agents.ts';
import type { Slots, Workspace, Workspaces } from '../slots/slots.ts';

const CALLS_MAX = 100; // in one answer, so that indexes of two workers don't meet

/** The context that all attempts of a run share. */
export type AttemptContext = {
  readonly run: string;
  readonly startedAt: string; // the date of every commit, so that one made again is the same
  readonly tell: (
    event: Event,
    place: { readonly worker?: number; readonly task?: string; readonly attempt?: number },
  ) => void;
  readonly settled: () => Promise<void>;
  readonly slots: Slots;
  readonly workspaces: Workspaces;
  readonly runTask: RunTask;
  readonly admission: RunAdmission;
  readonly models: RunModels;
  readonly servers: ToolServers;
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision>;
  /** The fields that are equal in every TaskSpec of the run. */
  readonly extensions: Extensions;
  readonly common: Pick<TaskSpec, 'tools' | 'served' | 'env' | 'ignore' | 'limits' | 'retry' | 'policy' | 'cacheKey'>;
  readonly outputFolder: (task: string, attempt: number) => string;
  /** Reads the history of an attempt from the run's journal, after the messages that it was seeded with. */
  readonly historyOf: (
    whose: { readonly task: string; readonly attempt: number },
    seed: readonly Message[],
  ) => Promise<Past | undefined>;
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
  /** A process that has exited began the attempt; it resumes in its workspace if that still exists. */
  readonly goesOn: boolean;
  /** Its history, if it has one. */
  readonly past?: Past;
  readonly mayFail: boolean; // another attempt would follow
  /** Resolves when it is this worker's turn to begin. */
  readonly turn: (signal: AbortSignal) => Promise<void>;
  /** Messages of the user. */
  readonly mail: Mail;
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

/** Runs one attempt to its `task_end`, which is durable when this resolves. */
export function attemptTask(context: AttemptContext, given: AttemptOptions, signal: AbortSignal): Promise<AttemptEnd> {
  return new TaskAttempt(context, given, signal).run();
}

const NOTHING_DONE = { summary: '', usage: NO_USAGE, refused: [] };

/** How the attempt stands while it is being ended. */
type AttemptResult = Pick<AttemptEnd, 'status' | 'failure' | 'commit' | 'files'>;

class TaskAttempt {
  readonly #context: AttemptContext;
  readonly #given: AttemptOptions;
  readonly #signal: AbortSignal;
  readonly #place: { readonly worker: number; readonly task: string; readonly attempt: number };
  readonly #branch: string;
  #workspace: Workspace | undefined;

  constructor(context: AttemptContext, given: AttemptOptions, signal: AbortSignal) {
    this.#context = context;
    this.#given = given;
    this.#signal = signal;
    this.#place = { worker: given.worker, task: given.task.id, attempt: given.attempt };
    this.#branch = `drover/${context.run}/${given.task.id}`;
  }

  async run(): Promise<AttemptEnd> {
    let outcome: TaskOutcome;
    try {
      outcome = await this.#work(await this.#begin());
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      outcome = { ...NOTHING_DONE, status: this.#signal.aborted ? 'cancelled' : 'failed', failure: error.failure };
    }
    return this.#end(outcome);
  }

  async #begin(): Promise<BegunAttempt> {
    const { workspaces, tell, settled } = this.#context;
    const { goesOn, base, seed, turn, task } = this.#given;
    const { runsOn } = task;
    const wish = { ...this.#place, base, signal: this.#signal, ...(runsOn !== undefined && { runsOn }) };
    const again = goesOn ? await workspaces.again(wish) : undefined;
    const workspace = again ?? (await workspaces.take(wish));
    this.#workspace = workspace;
    await turn(this.#signal);
    if (this.#signal.aborted) {
      // Nothing was begun in there.
      if (again === undefined) await workspace.release();
      throw new DroverError(turnFailureOfSignal(this.#signal));
    }
    const host = workspace.host?.name();
    const where = { workspace: workspace.path, ...(host !== undefined && { host }) };
    tell({ type: 'task_start', base, ...where, seed: seed.summary }, this.#place);
    await settled();
    // In another workspace what it remembers of the first one would be untrue.
    return { workspace, past: again === undefined ? undefined : this.#given.past };
  }

  async #work(begun: BegunAttempt): Promise<TaskOutcome> {
    await this.#hooks('before task', begun.workspace);
    const { tell, historyOf } = this.#context;
    const runTask = begun.workspace.host?.run ?? this.#context.runTask;
    const spec = taskSpecOfAttempt(this.#context, this.#given, begun);
    const open = openAttemptLink(this.#context, this.#given, begun.workspace);
    const { link } = open;
    const history = () => historyOf(this.#place, spec.seed);
    try {
      return await runMovingAttempt(
        { spec, link, runTask, history, tell: (event) => tell(event, this.#place) },
        this.#signal,
      );
    } finally {
      await open.close();
    }
  }

  async #end(outcome: TaskOutcome): Promise<AttemptEnd> {
    const { task, mayFail } = this.#given;
    const { usage, cost } = outcome;
    const summary = this.#context.redact(outcome.summary);
    const { isOver, result } = await this.#judge(outcome, summary);
    const { status, failure, commit, files } = result;
    const again = status === 'failed' && mayFail && failure !== undefined && FAILURES[failure.kind].reattempt;
    this.#context.tell(
      {
        type: 'task_end',
        status,
        again,
        files,
        usage,
        ...(failure !== undefined && { failure, reason: describe(failure) }),
        ...(summary !== '' && { summary }),
        ...(commit !== undefined && { commit, branch: this.#branch }),
        ...(cost !== undefined && { cost }),
      },
      this.#place,
    );
    await this.#context.settled();
    // Only once its end is on the disk: a run that resumes without that record resumes in this workspace.
    const isAsCommitted = status === 'finished' && (task.gates ?? []).length === 0;
    if (isOver) await this.#workspace?.release(isAsCommitted ? 'commit' : undefined);
    return {
      status,
      again,
      summary,
      files,
      ...(failure !== undefined && { failure }),
      ...(commit !== undefined && { commit }),
    };
  }

  /** Commits the work and runs the task's gates. Unless `isOver`, the workspace stays as it is, to be resumed. */
  async #judge(outcome: TaskOutcome, summary: string): Promise<{ isOver: boolean; result: AttemptResult }> {
    let result: AttemptResult = { ...failDeniedAttempt(outcome), files: [] };
    const workspace = this.#given.task.mode === 'write' ? this.#workspace : undefined;
    try {
      // A failed attempt is committed, too: the user may want its work.
      if (workspace !== undefined && result.status !== 'cancelled')
        result = { ...result, ...(await this.#commit(workspace, summary)) };
      if (workspace !== undefined && result.status === 'finished') {
        const failure = await this.#test(workspace, result.commit);
        if (failure !== undefined) result = { ...result, status: 'failed', failure };
      }
      if (result.status === 'finished' && this.#workspace !== undefined)
        await this.#hooks('after task', this.#workspace, { summary, files: result.files, commit: result.commit });
      return { isOver: result.status !== 'cancelled', result };
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      const status = this.#signal.aborted ? 'cancelled' : 'failed';
      const isOver = error.failure.kind === 'hook.blocked';
      return { isOver, result: { ...result, status, failure: error.failure } };
    }
  }

  /** The task's gates run in its workspace. For one on a host, they run here, in a workspace with the same tree. */
  async #test(workspace: Workspace, commit: string | undefined): Promise<Failure | undefined> {
    const { base, task } = this.#given;
    const isElsewhere = workspace.host !== undefined && (task.gates ?? []).length > 0;
    const wish = { ...this.#place, task: `${task.id}.gates`, base: commit ?? base, signal: this.#signal };
    const copy = isElsewhere ? await this.#context.slots.take(wish) : undefined;
    try {
      const left = { workspace: copy ?? workspace, commit };
      return await taskGateFailure(gatesOfAttempt(this.#context, this.#given, left), this.#signal);
    } finally {
      await copy?.release();
    }
  }

  /** For a task on a host, hooks run here, in a workspace with the same tree. Throws DroverError if one blocks. */
  async #hooks(at: HookPoint, workspace: Workspace, { commit, ...more }: HookedWork = {}): Promise<void> {
    const { run: id, extensions, common, tell } = this.#context;
    if (!extensions.hooks.some((hook) => hook.at === at)) return;
    const { title, prompt, agent } = this.#given.task;
    const facts = { ...this.#place, title, prompt, ...(agent !== undefined && { agent }), ...more };
    const wish = {
      ...this.#place,
      task: `${this.#place.task}.hooks`,
      base: commit ?? this.#given.base,
      signal: this.#signal,
    };
    const copy = workspace.host === undefined ? undefined : await this.#context.slots.take(wish);
    const { path: cwd, sandbox } = copy ?? workspace;
    const place = { cwd, env: common.env, sandbox };
    const { block, warnings } = await runHooks({ hooks: extensions.hooks, at, id, facts }, place, this.#signal);
    await copy?.release();
    for (const message of warnings) tell({ type: 'warning', message }, this.#place);
    if (block !== undefined) throw new DroverError({ kind: 'hook.blocked', message: block });
  }

  async #commit(workspace: Workspace, summary: string): Promise<Pick<AttemptResult, 'commit' | 'files'>> {
    const { redact, startedAt, tell } = this.#context;
    const message = `${redact(this.#given.task.title)}\n\n${summary}`;
    const committed = await workspace.commit({ message, when: startedAt, branch: this.#branch });
    if (committed === undefined) return { files: [] };
    const { commit, files, leftOut } = committed;
    for (const path of leftOut)
      tell({ type: 'warning', message: `${path} is a git repository of its own, and is left out` }, this.#place);
    return { files, commit };
  }
}

/** Facts for the hooks after a task, and the commit that holds its work. */
type HookedWork = {
  readonly summary?: string;
  readonly files?: readonly string[];
  readonly commit?: string | undefined;
};

type BegunAttempt = { readonly workspace: Workspace; readonly past: Past | undefined };

/** A worker whose calls were denied has failed, even if it reports success. */
function failDeniedAttempt({ status, failure, refused }: TaskOutcome): Pick<AttemptResult, 'status' | 'failure'> {
  if (status === 'finished' && refused.length > 0)
    return { status: 'failed', failure: { kind: 'permission.denied', calls: refused } };
  return { status, ...(failure !== undefined && { failure }) };
}

function taskSpecOfAttempt(
  context: AttemptContext,
  given: AttemptOptions,
  { workspace, past }: BegunAttempt,
): TaskSpec {
  const { task, attempt, worker, system, seed, before } = given;
  const content = seedAssignment({
    worker,
    task,
    attempt,
    workspace: workspace.path,
    isPromptRead: seed.prompts.has(task.prompt),
    ...(before !== undefined && { before }),
  });
  const spec: TaskSpec = {
    ...context.common,
    ...taskModels(context.models, task),
    ...extensionsOfPlannedTask(context.extensions, task),
    run: context.run,
    task: task.id,
    attempt,
    worker,
    mode: task.mode,
    system,
    seed: seed.messages,
    begin: { content },
    workspace: workspace.path,
    ...(workspace.sandbox !== undefined && { sandbox: workspace.sandbox }),
    outputFolder: context.outputFolder(task.id, attempt),
  };
  return resumeAttemptFrom(spec, past);
}

type OpenLink = { readonly link: TaskLink; readonly close: () => Promise<void> };

function openAttemptLink(context: AttemptContext, given: AttemptOptions, workspace: Workspace): OpenLink {
  const { task, attempt, worker, onAnswer } = given;
  const place = { worker, task: task.id, attempt };
  const admission = context.admission.admissionFor(place);
  const question: TaskLink['question'] = (asked, signal) => context.question({ ...asked, task: task.id }, signal);
  const line = context.servers.lineFor({
    cwd: workspace.path,
    sandbox: workspace.sandbox,
    emit: (event) => context.tell(relabelAttemptEvent(event, worker), place),
    question,
  });
  let isOpen = true;
  let isMeasured = given.past !== undefined || !doTaskModelsShareCache(context.models, task);
  const link: TaskLink = {
    emit: (event, step) => {
      if (!isOpen) return;
      if (event.type === 'message_start' && event.role === 'assistant') onAnswer();
      context.tell(relabelAttemptEvent(event, worker), { ...place, ...step });
      // A refused request has read no prompt.
      if (event.type !== 'usage' || isMeasured || spentTokensOf(event.usage) === 0) return;
      isMeasured = true;
      const miss = context.caches() && event.usage.cacheRead === 0 ? seedCacheMiss(given) : undefined;
      if (miss !== undefined) context.tell({ type: 'warning', message: miss }, { ...place, ...step });
    },
    settled: context.settled,
    ask: (order, hooks, signal) =>
      askForTaskHere(order, { route: modelRouteOfTask(context.models, order.model), admission, hooks }, signal),
    question,
    callServed: line.call,
    mail: given.mail,
  };
  const close = async () => {
    isOpen = false;
    admission.abandon();
    await line.close();
  };
  return { link, close };
}

/** The warning for a worker whose first request missed the cache. */
function seedCacheMiss({ system, seed }: AttemptOptions): string | undefined {
  if (seed.shared === undefined) return undefined;
  const at = firstSeedDifference(seed.shared, beginningOfSeed(system, seed.messages));
  return at === undefined
    ? 'its first request read nothing from the cache, although it begins like the coordinator’s, byte for byte'
    : `nothing of what it was seeded with was read from the cache: it differs from the coordinator’s at byte ${at}`;
}

/** The same event as this worker's. */
function relabelAttemptEvent(event: Event, worker: number): Event {
  if ('callIndex' in event && 'index' in event) return { ...event, index: worker * CALLS_MAX + event.callIndex };
  return event;
}

function gatesOfAttempt(
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
