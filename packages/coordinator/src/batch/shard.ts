// Shards of a batch for several machines. Each takes a part of the tasks, and all parts together are all tasks. Pure.
//
// The part of a task depends on the ids only, not on their order. The parts differ by at most one task.

import { createHash } from 'node:crypto';

export type Shard = { readonly index: number; readonly count: number }; // from 1

export function isInBatchShard<Task extends { readonly id: string }>(
  tasks: readonly Task[],
  { index, count }: Shard,
): readonly Task[] {
  const ranked = tasks
    .map((task) => ({ task, rank: createHash('sha256').update(task.id).digest('hex') }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1));
  const own = new Set(ranked.filter((_, at) => at % count === index - 1).map(({ task }) => task));
  return tasks.filter((task) => own.has(task));
}
