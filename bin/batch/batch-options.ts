// Options of drover batch: those of a run except the plan, and a few of its own.

import { UsageError } from '@drover/core/errors';
import type { Shard } from '@drover/coordinator/batch/shard';
import { flagOption, parseNonEmpty, valueOption, type Values } from '../start/command.ts';
import { parseBudget, parseCount } from '../start/quantities.ts';
import { runOptions } from '../run/run-options.ts';

const SHARDS_MAX = 10_000;
const CANARY_MAX = 1_000;

const { plan: _, rounds: __, tasks: ___, seed: ____, ...shared } = runOptions;

export const batchOptions = {
  ...shared,
  list: flagOption('Batch:', 'Print the tasks without running them'),
  'dry-run': flagOption('Batch:', 'Show tasks, overlaps, tokens and the estimated cost, without running anything'),
  canary: valueOption(
    'Batch:',
    'N',
    'Number of tasks to run first, to estimate the cost of all (default: none)',
    (text) => parseCount(text, 1, CANARY_MAX),
  ),
  'canary-max-cost': valueOption(
    'Batch:',
    'AMOUNT',
    'Stop after the canary if all tasks would cost more than this',
    parseBudget,
  ),
  shard: valueOption('Batch:', 'I/N', 'Run only this part of the tasks, such as 2/5', parseShard),
  fresh: flagOption('Batch:', 'Ignore results of earlier runs, and run every task'),
  schema: flagOption('Batch:', 'Print the JSON Schema of batch specs, for editors'),
  out: valueOption('Batch:', 'DIR', 'Folder for results, patches and reports (default: .drover/out)', parseNonEmpty),
};

export type BatchArgs = Values<typeof batchOptions>;

function parseShard(text: string): Shard {
  const [, index = '', count = ''] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  const shard = { index: Number(index), count: Number(count) };
  if (index === '' || shard.count < 1 || shard.count > SHARDS_MAX)
    throw new UsageError(`'${text}' is not a shard; write it like 2/5, the second of five`);
  if (shard.index < 1 || shard.index > shard.count)
    throw new UsageError(
      `there is no shard ${shard.index} of ${shard.count}; they are 1/${shard.count} to ${shard.count}/${shard.count}`,
    );
  return shard;
}
