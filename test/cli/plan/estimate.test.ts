// The estimate of a plan, from journals of earlier runs.

import type { PlannedTask } from '@drover/protocol/plan';
import { cp, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { runJournalPath } from '@drover/coordinator/run/journal';
import { expect, test } from 'vitest';
import { estimatePlan } from '../../../bin/run/plan/estimate.ts';
import { planEstimateWords } from '../../../bin/run/plan/plan-frame.ts';
import { planned, RunDesk, submits, writes } from '../../support/run/run-desk.ts';

const task = (id: string, dependsOn: readonly string[] = []): PlannedTask => ({
  id,
  title: id,
  prompt: id,
  dependsOn,
  files: [],
  mode: 'write',
});

test('an estimate rests on tasks of earlier runs with the same model', async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [writes('one.txt', 'one\n'), submits('one')] } }));
  const settings = { model: 'anthropic/scripted', repository: desk.repository, workers: 2 };
  expect(await estimatePlan([task('a')], settings, desk.home)).toBeUndefined();
  const { end } = await desk.run(['run', 'do it', '--yes']);
  const usualMs = end.tasks[0]?.elapsedMs ?? 0;
  const four = ['a', 'b', 'c', 'd'].map((id) => task(id));
  const estimate = await estimatePlan(four, settings, desk.home);
  expect(estimate).toEqual({ ms: 2 * usualMs, tasks: 1, runs: 1, isHere: true });
  const chain = [task('a'), task('b', ['a']), task('c', ['b'])];
  expect((await estimatePlan(chain, settings, desk.home))?.ms).toBe(3 * usualMs);
  expect(await estimatePlan(four, { ...settings, model: 'anthropic/other' }, desk.home)).toBeUndefined();
  expect((await estimatePlan(four, { ...settings, repository: '/elsewhere' }, desk.home))?.isHere).toBe(false);
});

test('newer runs of other models do not hide a run that an estimate can rest on', async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [writes('one.txt', 'one\n'), submits('one')] } }));
  const settings = { model: 'anthropic/scripted', repository: desk.repository, workers: 2 };
  const good = (await desk.run(['run', 'do it', '--yes'])).end.run ?? '';
  const other = (await desk.run(['run', 'do it', '--yes', '--model', 'anthropic/another'])).end.run ?? '';
  const runs = join(desk.home, 'runs');
  for (let n = 10; n < 30; n++)
    await cp(join(runs, other), join(runs, `run_${String(n).repeat(16)}`), { recursive: true });
  await utimes(runJournalPath(desk.home, good), 1, 1);
  expect((await estimatePlan([task('a')], settings, desk.home))?.runs).toBe(1);
});

test('an estimate says its basis, or why there is none', () => {
  expect(planEstimateWords(undefined)).toBe('Estimate: none, since no earlier run with this model finished a task');
  expect(planEstimateWords({ ms: 5_000, cost: 0.5, tasks: 1, runs: 1, isHere: false })).toBe(
    'Estimate: about $0.5000 and 5.0 s (this model: 1 task in 1 run elsewhere)',
  );
});
