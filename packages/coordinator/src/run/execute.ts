// Carries out one plan: every task is attempted, its work lands or doesn't, and what became of each is told.

import { DroverError } from '@drover/core/errors';
import { describe, type Failure } from '@drover/protocol/failures';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import type { TaskStatus } from '@drover/protocol/run';
import type { TaskMessage } from '@drover/core/task/link';
import type { PlannedTask } from '@drover/protocol/plan';
import { setTimeout as sleep } from 'node:timers/promises';
import { attemptTask, type AttemptEnd, type AttemptContext } from '../attempt/attempt.ts';
import { dispatchTasks, type Dispatch, type Dispatched, type Limiter, type WorkerSlot } from './dispatch.ts';
import { plannedAgentOfTask, planWithAgent } from '../plan/agents.ts';
import { planInOrder, waitsOfPlan, type Waits } from '../plan/graph.ts';
import type { RunControl, StartAgain } from '../control/run-control.ts';
import type { Git } from '../git/git.ts';
import { mergeConflictMessage } from '../merge/merge.ts';
import type { MergeTrain } from '../merge/train.ts';
import type { RunHistory } from './history.ts';
import type { Seed } from '../plan/seed.ts';
import type { Retry, TaskLedger, TaskStep } from './tasks.ts';

/** How long the others wait for the first worker's answer to begin, so that they find the cache warm. */
const WARM_UP_MS = 5_000;
/** The run stops after so many tasks in a row with the same refusal of the provider. */
const REFUSALS_MAX = 3;
const REFUSED = `the provider refused ${REFUSALS_MAX} tasks in a row for the same reason`;
/** How often a task that conflicts is tried again. */
const CONFLICTS_MAX = 1;

export type Plan = {
  readonly tasks: readonly PlannedTask[];
  readonly system: string;
  readonly seed: Seed;
};

export type ExecuteContext = {
  readonly context: AttemptContext;
  readonly train: MergeTrain;
  readonly base: string;
  readonly workers: number;
  readonly limit: Limiter | undefined;
  readonly failFast: boolean;
  readonly failuresMax: number;
  readonly attemptsMax: number;
  /** Results of these tasks are known from an earlier run. */
  readonly known: ReadonlyMap<string, KnownResult>;
  /** The first tasks go ahead; the judge says why the rest should not follow. */
  readonly control: RunControl;
  readonly canary: { readonly tasks: number; readonly judge: () => Failure | undefined } | undefined;
  /** Fed by `context.tell`. */
  readonly ledger: TaskLedger;
  /** The conversations of attempts that a crash or an interruption cut off. */
  readonly past: RunHistory | undefined;
};

/** The work of a task, as a commit on the run's base; without one there is nothing to change. */
export type KnownResult = { readonly commit?: string; readonly files: readonly string[]; readonly summary: string };

export async function executePlan(plan: Plan, conditions: ExecuteContext, signal: AbortSignal): Promise<void> {
  const { ledger, canary } = conditions;
  const ordered = planInOrder(plan.tasks);
  const waiting = waitsOfPlan(ordered);
  const isOpen = ({ id }: PlannedTask) => ledger.status(id) === undefined;
  expectOpenRun(
    ordered.filter((task) => task.mode === 'write' && isOpen(task)),
    waiting,
    conditions,
  );
  const skip = taskSkipper(conditions, signal);
  const refusals = new Refusals();
  const work = dispatchingWorker({ plan, conditions, waiting, skip, refusals }, signal);
  const ahead = canary?.tasks ?? ordered.length;
  await work(ordered.slice(0, ahead));
  const others = ordered.slice(ahead);
  const mayFollow = others.length > 0 && !signal.aborted && refusals.stop === undefined;
  const obstacle = mayFollow ? canary?.judge() : undefined;
  if (obstacle !== undefined) for (const task of others.filter(isOpen)) skip(task, describe(obstacle), obstacle);
  else if (refusals.stop === undefined) await work(others);
  else for (const task of others.filter(isOpen)) skip(task, REFUSED);
  if (refusals.stop !== undefined && !signal.aborted) throw new DroverError(refusals.stop);
}

/** Counts tasks in a row that failed with the same refusal of the provider. */
class Refusals {
  /** The refusal that should stop the run. */
  stop: Failure | undefined;
  #words = '';
  #count = 0;

  take(failure: Failure | undefined): void {
    const isRefusal = failure?.kind === 'provider.rejected' || failure?.kind === 'request.unmade';
    const words = isRefusal ? describe(failure) : '';
    this.#count = words === '' ? 0 : words === this.#words ? this.#count + 1 : 1;
    this.#words = words;
    if (this.#count >= REFUSALS_MAX) this.stop ??= failure;
  }
}

function expectOpenRun(
  open: readonly PlannedTask[],
  waiting: ReadonlyMap<string, Waits>,
  { train, ledger }: ExecuteContext,
): void {
  train.expect(
    open.map(({ id }) => {
      const { dependsOn = [], follows = [] } = waiting.get(id) ?? {};
      return { id, waitsFor: [...dependsOn, ...follows] };
    }),
  );
  // Tasks that conflicted before a crash went to the end of the order then, one after the other.
  for (const id of ledger.sentBack) if (open.some((task) => task.id === id)) train.sendBack(id);
}

function taskSkipper({ context, train }: ExecuteContext, signal: AbortSignal): Dispatch['skip'] {
  return (task, reason, failure) => {
    const status = signal.aborted ? 'cancelled' : 'skipped';
    if (task.mode === 'write') train.withdraw(task.id);
    const why = { reason, ...(failure !== undefined && { failure }) };
    context.tell({ type: 'task_end', status, again: false, ...why, files: [], usage: NO_USAGE }, { task: task.id });
  };
}

type Execution = {
  readonly plan: Plan;
  readonly conditions: ExecuteContext;
  readonly waiting: ReadonlyMap<string, Waits>;
  readonly skip: Dispatch['skip'];
  readonly refusals: Refusals;
};

/** Returns a function that dispatches tasks of the plan; the first of all of them warms the cache. */
function dispatchingWorker({ plan, conditions, waiting, skip, refusals }: Execution, signal: AbortSignal) {
  const { train, ledger, workers, limit, failFast, failuresMax, control } = conditions;
  const warm = new WarmUp();
  const runTask: Dispatch['runTask'] = async (task, slot, stop) => {
    const waits = waiting.get(task.id);
    const status = await finishTaskOfRun({ task, plan, conditions, slot, warm, waits, refusals }, stop);
    if (status !== undefined && status !== 'landed' && task.mode === 'write') train.withdraw(task.id);
    return status;
  };
  const whyStop = () => refusals.stop && REFUSED;
  const limits = { workers, limit, failFast, failuresMax };
  const held = (stop: AbortSignal) => control.untilUnpaused(stop);
  const statusOf = (task: string) => ledger.status(task);
  return async (ordered: readonly PlannedTask[]): Promise<void> => {
    const options = { ...limits, ordered, settled: ledger.statuses(), skip, runTask, whyStop, held, statusOf };
    const work = dispatchTasks(options, signal);
    control.executing(startTaskAgain({ plan, conditions, waiting }, work));
    await work.done.finally(() => control.executing(undefined));
  };
}

/** Reopens tasks in the journal and starts them with those that are at work. */
function startTaskAgain(
  { plan, conditions, waiting }: Pick<Execution, 'plan' | 'conditions' | 'waiting'>,
  work: Dispatched,
): StartAgain {
  return (tasks) => {
    if (work.why() !== undefined) return work.why();
    conditions.context.tell({ type: 'tasks_reopened', tasks, live: true }, {});
    const ids = new Set(tasks.map(({ id }) => id));
    const ordered = planInOrder(plan.tasks).filter(({ id }) => ids.has(id));
    expectOpenRun(
      ordered.filter(({ mode }) => mode === 'write'),
      waiting,
      conditions,
    );
    work.start(ordered);
    return undefined;
  };
}

type TaskContext = {
  readonly task: PlannedTask;
  readonly plan: Plan;
  readonly conditions: ExecuteContext;
  readonly slot: WorkerSlot;
  readonly warm: WarmUp;
  readonly waits: Waits | undefined;
  readonly refusals: Refusals;
};

/** Moves a task on, step by step, until the ledger has its status. Undefined if no worker slot was free in time. */
async function finishTaskOfRun(work: TaskContext, signal: AbortSignal): Promise<TaskStatus | undefined> {
  const { task, conditions, slot } = work;
  const { context, ledger, known } = conditions;
  if (ledger.status(task.id) === undefined) context.tell({ type: 'task_ready' }, { task: task.id });
  for (;;) {
    const { step, attempts, conflicts } = ledger.task(task.id);
    const found = attempts + conflicts === 0 ? known.get(task.id) : undefined;
    if (step.at === 'over') return step.status;
    if (step.at === 'landing') await landTaskOfRun(work, step);
    else if (found !== undefined) tellKnownTask(context, task, found);
    else if ((await slot((worker) => attemptTaskUnlessOver(work, worker, signal))) === undefined)
      return ledger.status(task.id);
  }
}

async function landTaskOfRun({ task, conditions }: TaskContext, { commit, summary }: LandingStep): Promise<void> {
  const { context, train, ledger } = conditions;
  const mayRetry = ledger.task(task.id).conflicts < CONFLICTS_MAX;
  await train.land({ task: task.id, commit, title: context.redact(task.title), summary, mayRetry });
}

type LandingStep = Extract<TaskStep, { readonly at: 'landing' }>;

/** Ends a task with the result that an earlier run found. */
function tellKnownTask(
  { run, tell }: AttemptContext,
  { id }: PlannedTask,
  { commit, files, summary }: KnownResult,
): void {
  const left = commit === undefined ? {} : { commit, branch: `drover/${run}/${id}` };
  const end = { type: 'task_end', status: 'finished', again: false, usage: NO_USAGE, cached: true } as const;
  tell({ ...end, files, summary, ...left }, { task: id });
}

/** The user may have cancelled the task while it waited for a worker. */
async function attemptTaskUnlessOver(
  work: TaskContext,
  worker: number,
  signal: AbortSignal,
): Promise<'over' | AttemptEnd> {
  const isOver = work.conditions.ledger.status(work.task.id) !== undefined;
  return isOver ? 'over' : makeNextAttempt(work, worker, signal);
}

/** Makes the next attempt, or continues the one that was cut off. */
async function makeNextAttempt(work: TaskContext, worker: number, signal: AbortSignal): Promise<AttemptEnd> {
  const { task, conditions, warm } = work;
  const { context, ledger, past, attemptsMax, control } = conditions;
  const { system } = work.plan;
  const seed = planWithAgent(work.plan.seed, plannedAgentOfTask(context.extensions, task));
  const { step, attempts, failures, retry, onto, told } = ledger.task(task.id);
  const cutOff = step.at === 'attempting' ? step : undefined;
  const number = cutOff?.attempt ?? attempts + 1;
  const base = cutOff?.base ?? onto ?? baseOfTask(task.id, work.waits, conditions);
  const reason = retry && (await reasonOfNextAttempt(retry, context.slots.store.git));
  const before = reason && [reason, ...toldTaskWords(told)].join('\n\n');
  const history = cutOff && past?.attempt({ task: task.id, attempt: number }, seed.messages);
  const details = { ...(before !== undefined && { before }), ...(history !== undefined && { past: history }) };
  const turns = { turn: warm.turn, onAnswer: warm.done };
  const mayFail = failures + 1 < attemptsMax;
  const goesOn = cutOff !== undefined;
  const controlled = control.begin(task.id);
  const { mail } = controlled;
  const end = await attemptTask(
    context,
    { task, attempt: number, worker, base, system, seed, mayFail, goesOn, mail, ...turns, ...details },
    AbortSignal.any([signal, controlled.signal]),
  ).finally(() => {
    controlled.close();
    warm.done();
  });
  tellLostTask(context, task.id, end.status === 'finished' ? ledger.task(task.id).messages : undefined);
  // Counted before it lands: the merge may take long, and the provider has answered.
  work.refusals.take(end.status === 'failed' ? end.failure : undefined);
  return end;
}

/** Messages of the user to earlier attempts, which a new worker has not heard. */
function toldTaskWords(told: readonly string[] = []): readonly string[] {
  return told.length === 0 ? [] : ['The user wrote to the worker before you:', ...told];
}

function tellLostTask({ tell }: AttemptContext, task: string, messages: readonly TaskMessage[] = []): void {
  for (const { text } of messages)
    tell(
      { type: 'warning', message: `your message came after the last step of ${task} and was not delivered: ${text}` },
      { task },
    );
}

/** Why there is another attempt, in the same words before and after a crash. */
async function reasonOfNextAttempt({ reason, conflict }: Retry, git: Git): Promise<string> {
  return (conflict && (await mergeConflictMessage(git, conflict))) ?? reason;
}

/** A task starts from the head that holds the last of the tasks it waited for, or that its reopening found. */
function baseOfTask(task: string, waiting: Waits | undefined, { base, ledger }: ExecuteContext): string {
  const before = new Set([...(waiting?.dependsOn ?? []), ...(waiting?.follows ?? [])]);
  const { landedBefore = 0 } = ledger.task(task);
  return [...ledger.landed].findLast(([id], at) => before.has(id) || at < landedBefore)?.[1] ?? base;
}

/** The first that has a workspace goes ahead; the others wait until its answer begins. */
class WarmUp {
  #begun = false;
  readonly #warm = Promise.withResolvers<void>();
  readonly done = (): void => this.#warm.resolve();

  readonly turn = async (signal: AbortSignal): Promise<void> => {
    if (!this.#begun) {
      this.#begun = true;
      return;
    }
    const timer = new AbortController();
    const late = sleep(WARM_UP_MS, undefined, { signal: AbortSignal.any([timer.signal, signal]) }).catch(
      () => undefined,
    );
    await Promise.race([this.#warm.promise, late]);
    timer.abort();
  };
}
