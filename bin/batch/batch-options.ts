// The options of drover batch: those of a run, without the plan, and what is a batch's own.

import { UsageError } from '@drover/core/errors';
import type { Shard } from '@drover/coordinator/batch/shard';
import { flag, nonEmpty, value, type Values } from '../start/command.ts';
import { parseBudget, parseCount } from '../start/quantities.ts';
import { runOptions } from '../run/run-options.ts';

const SHARDS_MAX = 10_000;
const CANARY_MAX = 1_000;

const { plan: _, rounds: __, tasks: ___, seed: ____, ...shared } = runOptions;

export const batchOptions = {
  ...shared,
  list: flag('Batch:', 'Print the tasks, and do nothing'),
  'dry-run': flag('Batch:', 'Show tasks, overlaps, tokens and what it could cost, and do nothing'),
  canary: value('Batch:', 'N', 'Have so many tasks go ahead, and say what all would cost', (text) =>
    parseCount(text, 1, CANARY_MAX),
  ),
  'canary-max-cost': value('Batch:', 'AMOUNT', 'Stop after the canary if all would cost more', parseBudget),
  shard: value('Batch:', 'I/N', 'Do only this part of the tasks, such as 2/5', parseShard),
  fresh: flag('Batch:', 'Do also what is known from an earlier run'),
  schema: flag('Batch:', 'Print the JSON Schema of a spec, for editors'),
  out: value('Batch:', 'DIR', 'Where results, patches and reports go (.drover/out)', nonEmpty),
};

export type BatchArgs = Values<typeof batchOptions>;

function parseShard(text: string): Shard {
  const [, index = '', count = ''] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  const shard = { index: Number(index), count: Number(count) };
  if (index === '' || shard.count < 1 || shard.count > SHARDS_MAX)
    throw new UsageError(`'${text}' is no shard; write it like 2/5: the second of five`);
  if (shard.index < 1 || shard.index > shard.count)
    throw new UsageError(
      `there is no shard ${shard.index} of ${shard.count}; they are 1/${shard.count} to ${shard.count}/${shard.count}`,
    );
  return shard;
}
