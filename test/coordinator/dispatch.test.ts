// Dispatch: when tasks start, on how many worker slots, and what a failure skips.

import { dispatchTasks, type Dispatch } from '@drover/coordinator/run/dispatch';
import type { TaskStatus } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';

const task = (id: string, dependsOn: readonly string[] = [], files: readonly string[] = []): PlannedTask => ({
  id,
  title: id,
  prompt: id,
  dependsOn,
  files,
  mode: 'write',
});
const never = new AbortController().signal;

type Told = { readonly log: string[]; readonly most: () => number };

async function dispatched(
  ordered: readonly PlannedTask[],
  ends: Readonly<Record<string, TaskStatus>> = {},
  more: Partial<Dispatch> = {},
  signal = never,
): Promise<Told> {
  const log: string[] = [];
  let atWork = 0;
  let most = 0;
  await dispatchTasks(
    {
      ordered,
      workers: 2,
      failFast: false,
      failuresMax: Infinity,
      settled: new Map(),
      runTask: (each, slot, stop) =>
        slot(async (worker) => {
          most = Math.max(most, (atWork += 1));
          log.push(`${each.id} starts on ${worker}`);
          await sleep(5, undefined, { signal: stop }).catch(() => undefined);
          atWork -= 1;
          log.push(`${each.id} ends`);
          return stop.aborted ? 'cancelled' : (ends[each.id] ?? 'landed');
        }),
      skip: ({ id }, because) => log.push(`${id} is skipped: ${because}`),
      ...more,
    },
    signal,
  ).done;
  return { log, most: () => most };
}

test('no more tasks run than there are worker slots, numbered from 1', async () => {
  const { log, most } = await dispatched(['a', 'b', 'c', 'd', 'e'].map((id) => task(id)));
  expect(most()).toBe(2);
  expect(log.filter((line) => line.includes('starts')).map((line) => line.at(-1))).toEqual(['1', '2', '1', '2', '1']);
});

test('a task starts when its dependencies have landed', async () => {
  const { log } = await dispatched([task('a'), task('b', ['a']), task('c', ['b'])]);
  expect(log).toEqual(['a starts on 1', 'a ends', 'b starts on 1', 'b ends', 'c starts on 1', 'c ends']);
});

test('a failure skips all transitive dependents, and no other task', async () => {
  const { log } = await dispatched([task('a'), task('b', ['a']), task('c', ['b']), task('d')], { a: 'gate_failed' });
  expect(log.filter((line) => line.includes('skipped'))).toEqual([
    'b is skipped: it depends on a, which is stopped by a gate',
    'c is skipped: it depends on b, which is skipped',
  ]);
  expect(log).toContain('d ends');
});

test('tasks that change the same files run in sequence, even if the first fails', async () => {
  const { log } = await dispatched([task('a', [], ['x']), task('b', [], ['x'])], { a: 'failed' });
  expect(log).toEqual(['a starts on 1', 'a ends', 'b starts on 1', 'b ends']);
});

test('a finished task is not repeated, and dependents can start', async () => {
  const settled = new Map<string, TaskStatus>([['a', 'landed']]);
  const { log } = await dispatched([task('a'), task('b', ['a'])], {}, { settled });
  expect(log).toEqual(['b starts on 1', 'b ends']);
});

test('with fail-fast the first failure stops active tasks and skips the rest', async () => {
  const plan = [task('a'), task('b'), task('c', ['b'])];
  const { log } = await dispatched(plan, { a: 'failed' }, { failFast: true, workers: 1 });
  expect(log.slice(0, 2)).toEqual(['a starts on 1', 'a ends']);
  expect(log.filter((line) => line.startsWith('c'))).toEqual([
    'c is skipped: another task failed, and --fail-fast stops at the first',
  ]);
});

test('an error in one task is thrown after all tasks have ended', async () => {
  const ended: string[] = [];
  const broken = dispatched(
    [task('a'), task('b')],
    {},
    {
      runTask: async ({ id }) => {
        if (id === 'a') throw new Error('broken');
        for (let turns = 0; turns < 100; turns++) await nextTurn();
        ended.push(id);
        return 'landed';
      },
    },
  );
  await expect(broken).rejects.toThrow('broken');
  expect(ended).toEqual(['b']);
});
