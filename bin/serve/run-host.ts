// A run that the server carries out in its own process: nobody is at a terminal, so whoever reads its events is
// asked, and cancels it.

import { PassThrough, Readable } from 'node:stream';
import type { Bus } from '@drover/core/bus';
import { newId } from '@drover/core/ids';
import { Questions } from '@drover/core/permission/questions';
import type { HostedRun, RunWanted } from '@drover/server/host';
import { choicesOf } from '../model/model-roles.ts';
import type { Io, StopListener } from '../io.ts';
import { parseBudget, parseDuration } from '../start/quantities.ts';
import { carryRun } from '../run/running.ts';
import { type RunArgs, untyped } from '../run/run-options.ts';
import { newSettings, surroundingsOf } from '../run/start-run.ts';
import { silentView } from '../views/silent.ts';
import type { RunView } from '../views/view.ts';
import type { ServeWishes } from './wishes.ts';

const nothingShown: RunView = { ...silentView, whileAsking: (ask) => ask() };

export async function hostRun(wanted: RunWanted, wishes: ServeWishes): Promise<HostedRun> {
  const { diagnostics } = wishes;
  const listeners = new Set<StopListener>();
  const io = { ...unattended(wishes.io), onStop: (each: StopListener) => heardBy(listeners, each, wishes.io) };
  const { settings, repository } = await surroundingsOf(wanted.cwd, io);
  const run = await newSettings(
    argsOf(wanted, wishes),
    { goal: wanted.goal, tasks: undefined },
    { settings, repository },
    io,
  );
  const id = newId('run');
  const questions = new Questions(() => undefined);
  const begun = Promise.withResolvers<Bus>();
  const carried = carryRun(
    {
      id,
      settings: run,
      repository,
      models: choicesOf(run, [], { settings, top: repository.top }),
      plan: undefined,
      view: nothingShown,
      rules: [...settings.rules, ...wishes.rules],
      yes: wishes.yes,
      containment: wishes.containment,
      mayBePartial: false,
      result: undefined,
      asked: questions,
      onBus: begun.resolve,
    },
    { settings, diagnostics, io },
  ).finally(() => questions.close());
  const bus = await Promise.race([begun.promise.then(onceBegun), carried.then(() => begun.promise)]);
  return {
    id,
    bus,
    answer: (requestId, answer) => questions.answer(requestId, answer),
    cancel: () => listeners.forEach(({ stop }) => stop('SIGINT')),
    ended: carried.then(
      () => undefined,
      (error: unknown) => diagnostics.diagnose('a run broke', { run: id, error: String(error) }, 'error'),
    ),
  };
}

/** Its first event is told when it is on the disk. */
async function onceBegun(bus: Bus): Promise<Bus> {
  const reader = bus.reader();
  for await (const _ of reader) break;
  return bus;
}

/** The streams of nobody. */
function unattended(io: Io): Io {
  return { ...io, stdin: Readable.from([]), stdout: new PassThrough().resume() };
}

/** Stopped by whoever cancels it, and with the server. */
function heardBy(listeners: Set<StopListener>, listener: StopListener, server: Io): () => void {
  listeners.add(listener);
  const forget = server.onStop({ stop: () => undefined, atOnce: listener.atOnce });
  return () => {
    listeners.delete(listener);
    forget();
  };
}

function argsOf(wanted: RunWanted, { model, yes, budget, steps }: ServeWishes): RunArgs {
  return {
    ...untyped(),
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
