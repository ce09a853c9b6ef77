// Starts the run of a batch from its spec and its tasks.

import { join, resolve } from 'node:path';
import { batchCacheSlot } from '@drover/coordinator/batch/cache';
import { canaryFirst } from '@drover/coordinator/batch/canary';
import { failuresMax } from '@drover/coordinator/batch/items/spec';
import { UsageError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import { modelRolesOfRun, type RunSettings } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import { nameModel } from '../model/model-choice.ts';
import { modelLabel } from '../model/model-roles.ts';
import { findModelPrice } from '../model/price.ts';
import type { Io } from '../io.ts';
import { type RunArgs, untypedRunArgs } from '../run/run-options.ts';
import type { Shared } from '../run/running.ts';
import { newRunSettings, startRun, type Surrounded } from '../run/start-run.ts';
import type { BatchArgs } from './batch-options.ts';
import { storeBatch, type Within } from './history.ts';
import { openBatchOutputFolder } from './results/outputs.ts';
import type { Prepared } from './prepare.ts';
import { refuseBatchSpec, type SpecFile } from '../files/batch-spec.ts';
import { fieldMistake } from '../files/values.ts';

export type Batch = {
  readonly specFile: SpecFile;
  readonly prepared: Prepared;
  readonly around: Surrounded;
  readonly name: string; // of the repository
  readonly among?: Among;
};

/** Facts of a repository that is one of several. */
export type Among = { readonly id: string; readonly within: Within; readonly shared: Shared };

export async function startBatch(args: BatchArgs, batch: Batch, io: Io): Promise<number> {
  const { around, prepared, specFile, name: repositoryName, among } = batch;
  const { settings: config, repository } = around;
  const run = await batchSettings(args, batch, io);
  const model = batchOwnModel(args, batch, io);
  const out = resolve(io.cwd, args.out ?? join(repository.top, '.drover', 'out'));
  await openBatchOutputFolder(out);
  const id = among?.id ?? newId('run');
  const { shard, junit, summary } = args;
  await storeBatch(config.home, id, {
    v: 1,
    name: specFile.spec.name,
    spec: specFile.sha256,
    out,
    repository: repositoryName,
    ...(among !== undefined && { within: among.within }),
    ...(junit !== undefined && { junit: resolve(io.cwd, junit) }),
    ...(summary !== undefined && { summary: resolve(io.cwd, summary) }),
    ...(shard !== undefined && { shard }),
    total: prepared.total,
    usesCache: !args.fresh,
    tasks: Object.fromEntries(
      prepared.tasks.map((task) => {
        const { id: name, group, files } = task;
        return [name, { group, files, ...batchCacheSlot(task, model ?? run.model, prepared.tree) }];
      }),
    ),
  });
  const planned = prepared.tasks.map(
    ({ id: task, title, prompt, dependsOn, files, mode, gates, agent }): PlannedTask => ({
      id: task,
      title,
      prompt,
      dependsOn,
      files,
      mode,
      gates,
      ...(model !== undefined && { model }),
      ...(agent !== undefined && { agent }),
    }),
  );
  const tasks = args.canary === undefined ? planned : canaryFirst(planned, args.canary);
  const { shared } = among ?? {};
  const start = { ...around, id, run, tasks, ...(shared && { shared }) };
  return (await startRun(batchRunArgs(args, specFile), start, io)).exitCode;
}

/** The label of the model that the spec names for its tasks. Throws UsageError with the position of its name. */
export function batchOwnModel(
  args: BatchArgs,
  { specFile, around }: Pick<Batch, 'specFile' | 'around'>,
  io: Io,
): string | undefined {
  const { model } = specFile.spec.task;
  if (model === undefined) return undefined;
  const place = { settings: around.settings, top: around.repository.top, io };
  const mistake = fieldMistake(() => modelLabel(model, args, place));
  if (mistake !== undefined) refuseBatchSpec([{ key: 'task.model', message: mistake }], specFile);
  return modelLabel(model, args, place);
}

/** Settings of a batch's run: flags win over the spec. */
export async function batchSettings(
  args: BatchArgs,
  { specFile, prepared, around }: Batch,
  io: Io,
): Promise<RunSettings> {
  const { name, limits } = specFile.spec;
  const own = batchOwnModel(args, { specFile, around }, io);
  const made = await newRunSettings(batchRunArgs(args, specFile), { goal: name, tasks: prepared.tasks }, around, io);
  // A cap in dollars per task needs a price, like the budget of the whole run.
  const models = [...modelRolesOfRun(made).work, ...(own === undefined ? [] : [own])];
  const named = models.map((label) => nameModel(label, around.settings));
  named.forEach((model) => findModelPrice(model, limits.perTask, around.settings));
  const most = failuresMax(limits.stopWhenFailed, prepared.tasks.length);
  const { canary, 'canary-max-cost': cost } = args;
  if (canary === undefined && cost !== undefined)
    throw new UsageError('--canary-max-cost needs --canary N: how many tasks go ahead');
  named.forEach((model) => findModelPrice(model, cost, around.settings));
  return {
    ...made,
    tasksMax: Math.max(made.tasksMax, prepared.tasks.length),
    ...(limits.perTask !== undefined && { taskCap: limits.perTask }),
    ...(most !== undefined && { failuresMax: most }),
    ...(canary !== undefined && { canary: { tasks: canary, ...(cost !== undefined && { cost }) } }),
  };
}

function batchRunArgs(args: BatchArgs, { spec }: SpecFile): RunArgs {
  const { limits } = spec;
  return {
    ...untypedRunArgs(),
    ...args,
    // Tasks share the system prompt and the tools as a cached prefix; only the task text differs.
    seed: 'none',
    workers: args.workers ?? spec.workers,
    deliver: args.deliver ?? spec.deliver,
    gate: [...spec.gates, ...args.gate],
    setup: [...spec.setup, ...args.setup],
    budget: args.budget ?? limits.budget,
    timeout: args.timeout ?? limits.timeoutMs,
    'task-timeout': args['task-timeout'] ?? limits.perTaskTimeoutMs,
  };
}
