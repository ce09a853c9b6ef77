// Limits of a batch: canary, failures and budgets; and what a resumed batch retries.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { canaryFirst, canaryVerdict } from '@drover/coordinator/batch/canary';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import type { Answer } from '@drover/rehearsal/script';
import { BatchDesk, noisyFiles, SPEC, tidying } from '../support/run/batch-desk.ts';
import { calls } from '../support/run/run-desk.ts';
import { temporaryFolder } from '../support/workspace.ts';

const REFUSES: Answer = { stop: 'refusal', text: 'I will not.' };
const warnings = (events: readonly { readonly type: string }[]) =>
  events.flatMap((event) => ('message' in event && event.type === 'warning' ? [String(event.message)] : []));

test('a canary runs first, estimates the whole batch, and the others follow', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(4));
  const { code, events, end } = await batch.run(['--canary', '2', '--canary-max-cost', '10mtok']);
  expect([code, end.tasks.map(({ task }) => task)]).toEqual([
    0,
    ['src-file1.ts', 'src-file3.ts', 'src-file2.ts', 'src-file4.ts'],
  ]);
  expect(warnings(events)).toEqual([
    expect.stringMatching(
      /^the canary: 2 of 2 tasks went well; all 4 would take about \d+ tokens and \d+\.\d minutes$/,
    ),
  ]);
  const told = events.map(({ type, task }) => `${type} ${task ?? ''}`);
  const judged = told.indexOf('warning ');
  expect([judged > told.indexOf('merge_end src-file3.ts'), judged < told.indexOf('task_start src-file2.ts')]).toEqual([
    true,
    true,
  ]);
});

test('a batch over budget stops after its canary with exit 6; resume runs the rest', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(3));
  const { code, end } = await batch.run(['--canary', '1', '--canary-max-cost', '1ktok']);
  expect([code, await batch.statuses()]).toEqual([
    6,
    { 'src-file1.ts': 'landed', 'src-file2.ts': 'skipped', 'src-file3.ts': 'skipped' },
  ]);
  expect([batch.requests, (await batch.results())[1]?.reason]).toEqual([
    3,
    expect.stringContaining('more than the canary allows'),
  ]);
  const resumed = await batch.desk.drover(['resume', end.run ?? '', '--view', 'silent']);
  expect([resumed.code, new Set(Object.values(await batch.statuses()))]).toEqual([0, new Set(['landed'])]);
});

test('a canary that fails stops the other tasks', async () => {
  const batch = await BatchDesk.with(
    tidying(() => REFUSES),
    noisyFiles(3),
  );
  const { code } = await batch.run(['--canary', '1']);
  expect([code, Object.values(await batch.statuses()), batch.requests]).toEqual([
    3,
    ['failed', 'skipped', 'skipped'],
    1,
  ]);
});

test('the estimate scales the canary’s usage; cached tasks don’t count', () => {
  const row = { task: 't', title: 't', status: 'landed', attempts: 1, files: [], waits: 0, elapsedMs: 60_000 } as const;
  const usage = { input: 50, output: 25, cacheRead: 20, cacheWrite: 5 };
  const rows = (cost?: number) =>
    Array.from({ length: 8 }, () => ({ ...row, usage, ...(cost !== undefined && { cost }) }));
  const canary = { tasks: 2, workers: 4 };
  expect(canaryVerdict(rows(), canary).message).toBe(
    'the canary: 2 of 2 tasks went well; all 8 would take about 800 tokens and 2.0 minutes',
  );
  expect(canaryVerdict(rows(0.25), { ...canary, cost: { usd: 1.9 } })).toMatchObject({
    message: expect.stringContaining('about $2.00 and') as string,
    failure: { kind: 'limit.reached', limit: 'budget' },
  });
  const [known, ...others] = rows();
  if (known === undefined) throw new Error('no rows');
  const partly = [{ ...known, attempts: 0, usage: NO_USAGE, elapsedMs: 0 }, ...others];
  expect(canaryVerdict(partly, canary).message).toContain('1 of 1 tasks went well; all 8 would take about 700 tokens');
});

test('a canary takes its tasks from the whole plan', () => {
  expect(canaryFirst(['a', 'b', 'c', 'd', 'e', 'f'], 3)).toEqual(['a', 'c', 'e', 'b', 'd', 'f']);
  expect(canaryFirst(['a', 'b'], 5)).toEqual(['a', 'b']);
});

test.each([
  ['40%', 2],
  ['1', 1],
])('stopWhenFailed %s ends the batch at that number of failures', async (share, failures) => {
  const gate = 'echo red; false';
  const spec = `${SPEC}  gate: ["${gate}"]\nlimits: { stopWhenFailed: ${share} }\n`;
  const batch = await BatchDesk.with(tidying(), noisyFiles(5), spec);
  const { code } = await batch.run();
  const states = Object.values(await batch.statuses());
  expect([
    code,
    states.filter((state) => state === 'failed').length,
    states.filter((state) => state === 'skipped').length,
  ]).toEqual([3, failures, 5 - failures]);
  expect((await batch.results()).at(-1)?.reason).toContain(
    `${failures} ${failures === 1 ? 'task has' : 'tasks have'} failed`,
  );
});

test('stopWhenFailed counts a task that the merge train fails while later ones work', async () => {
  const marker = join(await temporaryFolder(), 'a later task works');
  // The gate of the first task ends once the fourth one has asked the model, whose answer never comes.
  const hangs = (path: string): Answer | undefined => {
    if (path !== 'src/file4.ts') return undefined;
    writeFileSync(marker, '');
    return { text: 'too late', delayMs: 600_000 };
  };
  const gate = `grep -q console src/file1.ts || { until [ -e '${marker}' ]; do sleep 0.02; done; false; }`;
  const batch = await BatchDesk.with(tidying(hangs), noisyFiles(6), `${SPEC}limits: { stopWhenFailed: 1 }\n`);
  const open = ['--sandbox', 'off', '--yes'];
  const { code } = await batch.run(['--workers', '1', '--gate', gate, ...open]);
  expect([code, Object.values(await batch.statuses())]).toEqual([
    3,
    ['gate_failed', 'landed', 'landed', 'cancelled', 'skipped', 'skipped'],
  ]);
});

test('a task that exceeds its own budget fails alone', async () => {
  const dear = (path: string, step: number): Answer | undefined =>
    path === 'src/file1.ts' && step < 9 ? { ...calls('read', { path }), usage: { input: 30_000 } } : undefined;
  const batch = await BatchDesk.with(
    tidying(dear),
    noisyFiles(2),
    `${SPEC}limits: { perTask: 60ktok, budget: 1mtok }\n`,
  );
  const { code } = await batch.run();
  const [first, second] = await batch.results();
  // CI must learn that the budget was reached.
  expect([code, first?.status, first?.failure, second?.status]).toEqual([
    6,
    'failed',
    expect.objectContaining({ kind: 'limit.reached', limit: 'budget' }),
    'landed',
  ]);
});

test('a provider that refuses every task is the cause, even if the batch stopped early', async () => {
  const spec = `${SPEC}limits: { stopWhenFailed: 1 }\n`;
  const batch = await BatchDesk.with({ ...tidying(), keys: ['another'] }, noisyFiles(3), spec);
  const { code } = await batch.run();
  expect([code, Object.values(await batch.statuses())]).toEqual([9, ['failed', 'skipped', 'skipped']]);
});
