// One batch over several machines: each takes its part of the tasks, and all parts together are all tasks. Pure.
//
// Who gets a task depends on the tasks' ids alone, not on their order; and the parts differ by one task at most.

import { createHash } from 'node:crypto';

export type Shard = { readonly index: number; readonly count: number }; // from 1

export function inShard<Task extends { readonly id: string }>(
  tasks: readonly Task[],
  { index, count }: Shard,
): readonly Task[] {
  const ranked = tasks
    .map((task) => ({ task, rank: createHash('sha256').update(task.id).digest('hex') }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1));
  const own = new Set(ranked.filter((_, at) => at % count === index - 1).map(({ task }) => task));
  return tasks.filter((task) => own.has(task));
}
