// drover batch <spec>: one task for each file, folder, package or repository that a spec selects.

import { basename, resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { type BatchArgs, batchOptions } from '../batch/batch-options.ts';
import { prepareBatch } from '../batch/prepare.ts';
import { readRepositoriesFile } from '../files/repositories-file.ts';
import { listSpecCommandKeys, readBatchSpec, type SpecFile } from '../files/batch-spec.ts';
import type { Batch } from '../batch/start-batch.ts';
import { defineCommand } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { type Io, print } from '../io.ts';
import { openRunSurroundings } from '../run/start-run.ts';
import { findWorkFolder } from '../start/settings.ts';
import { checkNamedFileTrust } from '../trust/named-file.ts';

export const batch = defineCommand({
  word: { name: 'spec', about: 'The batch spec, a YAML file', required: false },
  options: batchOptions,
  examples: [
    ['drover batch refactor.yaml --list', 'See the tasks it would make'],
    ['drover batch refactor.yaml --dry-run', 'See what it could cost, before anything is spent'],
    [
      'drover batch refactor.yaml --canary 3 --canary-max-cost 20usd',
      'Try three tasks, and run the rest if all would cost at most 20usd',
    ],
    ['drover batch refactor.yaml --shard 2/5 --json', 'In CI: the second of five jobs, events as JSON'],
  ],
  async run(args, io) {
    if (args.schema) {
      const { jsonSchemas } = await import('../files/json-schemas.ts');
      await print(io.stdout, `${JSON.stringify(jsonSchemas['batch-spec'](), undefined, 2)}\n`);
      return exitCode.done;
    }
    if (args.word === undefined) throw new UsageError('name a batch spec: drover batch refactor.yaml');
    const specFile = await readBatchSpec(args.word, io.cwd);
    const trust = { trustsAll: args['trust-project'] };
    const { file, sha256, spec } = specFile;
    const path = resolve(io.cwd, file);
    const cwd = await findWorkFolder(args.cwd, io);
    await checkNamedFileTrust({ path, sha256, file, keys: listSpecCommandKeys(spec), cwd }, trust, io);
    const entries = await readRepositoriesFile(specFile, io);
    const batches =
      entries === undefined
        ? [await prepareBatchHere(args, specFile, io)]
        : await (await import('../batch/repositories.ts')).prepareRepositories(args, { specFile, entries }, io);
    if (args.list) return (await import('../batch/list.ts')).listBatchTasks(batches, args.json, io);
    if (args['dry-run']) return (await import('../batch/dry-run.ts')).dryRunBatch(args, batches, io);
    const [only] = batches;
    if (entries !== undefined || only === undefined)
      return (await import('../batch/repositories.ts')).startRepositories(args, batches, io);
    return (await import('../batch/start-batch.ts')).startBatch(args, only, io);
  },
});

async function prepareBatchHere(args: BatchArgs, specFile: SpecFile, io: Io): Promise<Batch> {
  const around = await openRunSurroundings(args.cwd, io, { trustsAll: args['trust-project'] });
  const name = basename(around.repository.top);
  const place = { repository: around.repository, name, shard: args.shard, isOneOfSeveral: false };
  return { specFile, around, name, prepared: await prepareBatch(specFile, place, io) };
}
