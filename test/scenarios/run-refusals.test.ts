// A provider that refuses every worker: the run stops after three tasks, and says it once.

import { expect, test } from 'vitest';
import { BatchDesk, noisyFiles, tidying } from '../support/run/batch-desk.ts';
import { planned, RunDesk, statuses, submits, writes } from '../support/run/run-desk.ts';

const REFUSED = { answers: [{ fault: { fault: 'status', status: 400 } } as const] };

test('three refusals in a row stop the run, which says so once and makes no branch', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const desk = await RunDesk.with(planned(Object.fromEntries(names.map((name) => [name, REFUSED]))));
  const { code, end } = await desk.run(['run', 'go']);
  expect([code, end.failure?.kind]).toEqual([9, 'provider.rejected']);
  expect(statuses(end)).toEqual({ a: 'failed', b: 'failed', c: 'failed', d: 'skipped', e: 'skipped' });
  const skipped = end.tasks.filter(({ status }) => status === 'skipped').map(({ reason }) => reason);
  expect(new Set(skipped)).toEqual(new Set(['the provider refused 3 tasks in a row for the same reason']));
  expect(desk.git('branch', '--list', 'drover/*')).toBe('');
});

test('a task that lands between refusals lets the run continue', async () => {
  const good = { answers: [writes('b.txt', 'b\n'), submits('b')] };
  const desk = await RunDesk.with(planned({ a: REFUSED, b: REFUSED, good, c: REFUSED, d: REFUSED }));
  const { end } = await desk.run(['run', 'go']);
  expect(end.tasks.map(({ status }) => status)).toEqual(['failed', 'failed', 'landed', 'failed', 'failed']);
});

test('a batch stops at the third refusal, and sends no further request', async () => {
  const batch = await BatchDesk.with(
    tidying(() => ({ fault: { fault: 'status', status: 400 } })),
    noisyFiles(20),
  );
  const { code } = await batch.run();
  expect([code, batch.desk.server.requests.length]).toEqual([9, 3]);
});

test('uncommitted changes are named before the run starts', async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [writes('b.txt', 'b\n'), submits('b')] } }));
  await desk.write({ 'a.txt': 'changed\n', 'new.txt': 'new\n' });
  const { code, stderr } = await desk.run(['run', 'go']);
  expect(code).toBe(0);
  expect(stderr).toContain('the run starts from your last commit, without your uncommitted changes: a.txt, new.txt');
});
