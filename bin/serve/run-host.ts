// A run inside the server's process. It has no terminal: clients that read its events answer its questions and cancel
// it.

import { PassThrough, Readable } from 'node:stream';
import type { Bus } from '@drover/core/bus';
import { newId } from '@drover/core/ids';
import { Questions } from '@drover/core/permission/questions';
import { RunControl } from '@drover/coordinator/control/run-control';
import type { ApprovePlan, PlanAnswer } from '@drover/coordinator/plan/approval';
import { lacksRunApproval } from '@drover/coordinator/run/runs';
import { UsageError } from '@drover/core/errors';
import type { HostedRun, RunAgain, RunWanted } from '@drover/server/host';
import { readStoredBatch } from '../batch/history.ts';
import { readRunState } from '../history/run.ts';
import { checkPlannedAgents } from '../extensions/load.ts';
import { tasksToRetry } from '../result/retried-tasks.ts';
import type { NamedRun } from '../result/run-store.ts';
import { prepareResumedRun } from '../run/resume-run.ts';
import { stateFolder } from '../start/settings.ts';
import { chooseRunModels } from '../model/model-roles.ts';
import type { Io, StopListener } from '../io.ts';
import { parseBudget, parseDuration } from '../start/quantities.ts';
import { carryRun } from '../run/running.ts';
import { type RunArgs, untypedRunArgs } from '../run/run-options.ts';
import { newRunSettings, settingsWithHosts, type Start, openRunSurroundings } from '../run/start-run.ts';
import { silentView } from '../views/silent.ts';
import type { RunView } from '../views/view.ts';
import type { ServeWishes } from './wishes.ts';

const nothingShown: RunView = { ...silentView, whileAsking: (ask) => ask() };

export async function serveRun(wanted: RunWanted, wishes: ServeWishes): Promise<HostedRun> {
  const stops = new Set<StopListener>();
  const io = unattendedServeIo(wishes.io, stops);
  const around = await openRunSurroundings(wanted.cwd, io);
  const { goal, approve = false } = wanted;
  const run = await newRunSettings(servedRunArgs(wanted, wishes), { goal, tasks: undefined }, around, io);
  return carryServedRun(
    { ...around, id: newId('run'), run: { ...run, ...(approve && { approve }) }, tasks: undefined },
    {
      wishes,
      io,
      stops,
      approve,
      workers: wanted.workers,
    },
  );
}

/** Resumes a run, or retries tasks of it. Plans wait for an answer as before, unless the client says otherwise. */
export async function serveRunAgain({ id, approve, retry }: RunAgain, wishes: ServeWishes): Promise<HostedRun> {
  const stops = new Set<StopListener>();
  const io = unattendedServeIo(wishes.io, stops);
  if ((await readStoredBatch(stateFolder(io), id)) !== undefined)
    throw new UsageError('this run belongs to a batch, whose outputs are written on the command line: drover resume');
  const args = { ...untypedRunArgs(), yes: wishes.yes, steps: wishes.steps };
  const chosen = retry && { retry: (run: NamedRun) => tasksToRetry(run, retry) };
  const kept = await readRunState(stateFolder(io), id);
  const { past } = kept;
  const asks = approve ?? (past !== undefined && (past.settings.approve === true || lacksRunApproval(past)));
  const { run, ...start } = await prepareResumedRun(args, { id, kept, ...chosen }, io);
  const { approve: _, ...others } = run;
  const again = { ...start, run: { ...others, ...(asks && { approve: asks }) } };
  return carryServedRun(again, { wishes, io, stops, approve: asks });
}

type Carrying = {
  readonly wishes: ServeWishes;
  readonly io: Io;
  readonly stops: ReadonlySet<StopListener>;
  readonly approve: boolean;
  /** Tasks at once, if the client has said it. */
  readonly workers?: number | undefined;
};

async function carryServedRun(start: Start, { wishes, io, stops, approve, workers }: Carrying): Promise<HostedRun> {
  const { id, run, planned = [], read, settings, repository, project, extensions, shared } = start;
  checkPlannedAgents(planned, extensions);
  const { diagnostics, hosts } = wishes;
  const place = { hosts, workers, run, tasks: planned, repository, settings };
  const questions = new Questions(() => undefined);
  const plans = new PlanQuestion();
  const control = new RunControl();
  const begun = Promise.withResolvers<Bus>();
  const carried = carryRun(
    {
      id,
      settings: await settingsWithHosts(place),
      ...(hosts !== undefined && { hosts }),
      repository,
      extensions,
      models: chooseRunModels(run, [...planned, ...extensions.agents], { settings, top: repository.top }),
      plan: undefined,
      ...(read !== undefined && { read }),
      view: nothingShown,
      rules: [...settings.rules, ...wishes.rules],
      yes: wishes.yes,
      containment: wishes.containment,
      servers: { project, files: wishes.mcp },
      hub: wishes.hub,
      mayBePartial: false,
      result: undefined,
      asked: questions,
      control,
      ...(approve && { approve: plans.ask }),
      ...(shared !== undefined && { shared }),
      onBus: begun.resolve,
    },
    { settings, diagnostics, io },
  ).finally(() => questions.close());
  const bus = await Promise.race([begun.promise.then(onceServedRunBegun), carried.then(() => begun.promise)]);
  return {
    id,
    bus,
    waiting: () => questions.waiting + (plans.isWaiting ? 1 : 0),
    answer: (requestId, answer) => questions.answer(requestId, answer),
    answerPlan: (answer) => plans.answer(answer),
    cancel: () => stops.forEach(({ stop }) => stop('SIGINT')),
    control,
    ended: carried.then(
      () => undefined,
      (error: unknown) => diagnostics.diagnose('a run broke', { run: id, error: String(error) }, 'error'),
    ),
  };
}

/** The plan that waits for an answer over HTTP; one at a time. */
class PlanQuestion {
  #waiting: PromiseWithResolvers<PlanAnswer | undefined> | undefined;

  get isWaiting(): boolean {
    return this.#waiting !== undefined;
  }

  readonly ask: ApprovePlan = async (_proposal, signal) => {
    const waiting = Promise.withResolvers<PlanAnswer | undefined>();
    this.#waiting = waiting;
    const withdraw = () => waiting.resolve(undefined);
    signal.addEventListener('abort', withdraw, { once: true });
    if (signal.aborted) withdraw();
    try {
      return await waiting.promise;
    } finally {
      signal.removeEventListener('abort', withdraw);
      this.#waiting = undefined;
    }
  };

  answer(answer: PlanAnswer | undefined): boolean {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(answer);
    return waiting !== undefined;
  }
}

/** Its first event is told when it is on the disk. */
async function onceServedRunBegun(bus: Bus): Promise<Bus> {
  const reader = bus.reader();
  for await (const _ of reader) break;
  return bus;
}

/** No terminal; a client cancels the run. */
function unattendedServeIo(io: Io, stops: Set<StopListener>): Io {
  const onStop = (each: StopListener) => hearServeStop(stops, each, io);
  return { ...io, stdin: Readable.from([]), stdout: new PassThrough().resume(), onStop };
}

/** A client can cancel it, and it stops with the server. */
function hearServeStop(listeners: Set<StopListener>, listener: StopListener, server: Io): () => void {
  listeners.add(listener);
  const forget = server.onStop({ stop: () => undefined, atOnce: listener.atOnce });
  return () => {
    listeners.delete(listener);
    forget();
  };
}

function servedRunArgs(wanted: RunWanted, { model, yes, budget, steps }: ServeWishes): RunArgs {
  return {
    ...untypedRunArgs(),
    model: wanted.model ?? model,
    yes,
    steps,
    workers: wanted.workers,
    gate: wanted.gates ?? [],
    deliver: wanted.deliver,
    budget: wanted.budget === undefined ? budget : parseBudget(wanted.budget),
    timeout: wanted.timeout === undefined ? undefined : parseDuration(wanted.timeout),
  };
}
