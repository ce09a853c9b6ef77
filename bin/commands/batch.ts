// drover batch <spec>: one task for each file, folder, package or repository that a spec selects.

import { UsageError } from '@drover/core/failure';
import { batchOptions } from '../batch/batch-options.ts';
import { prepare } from '../batch/prepare.ts';
import { readSpec } from '../batch/spec-file.ts';
import { command } from '../command.ts';
import { surroundingsOf } from '../run/start-run.ts';

export const batch = command({
  word: { name: 'spec', about: 'The batch spec, a YAML file', required: true },
  options: batchOptions,
  examples: [
    ['drover batch refactor.yaml --list', 'See the tasks it would make'],
    ['drover batch refactor.yaml --dry-run', 'See what it could cost, before anything is spent'],
    [
      'drover batch refactor.yaml --canary 3 --canary-max-cost 20usd',
      'Try three tasks, and go on if all are affordable',
    ],
    ['drover batch refactor.yaml --shard 2/5 --json', 'In CI: the second of five jobs, events as JSON'],
  ],
  async run(args, io) {
    if (args.word === undefined) throw new UsageError('name a batch spec: drover batch refactor.yaml');
    const specFile = await readSpec(args.word, io.cwd);
    const around = await surroundingsOf(args.cwd, io);
    const prepared = await prepare(specFile, { repository: around.repository, shard: args.shard }, io);
    if (args.list) {
      const { listTasks } = await import('../batch/list.ts');
      return listTasks(prepared, args.json, io);
    }
    if (args['dry-run']) {
      const { dryRun } = await import('../batch/dry-run.ts');
      return dryRun(args, { specFile, prepared, around }, io);
    }
    const { startBatch } = await import('../batch/start-batch.ts');
    return startBatch(args, { specFile, prepared, around }, io);
  },
});
