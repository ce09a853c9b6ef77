// drover replay of runs: the same output from the journal alone, at any speed.

import { readdir } from 'node:fs/promises';
import type { Recorded } from '@drover/protocol/events';
import { retellJournal } from '@drover/core/journal/retelling';
import type { JsonObject } from '@drover/protocol/json';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import { expect, test } from 'vitest';
import { main } from '../../../bin/drover.ts';
import { runLinesView } from '../../../bin/views/run-lines.ts';
import { sampleRun, sampleSettings, Teller } from '../../support/run/sample-run.ts';
import { FakeIo } from '../fake-io.ts';
import { Shelf } from './shelf.ts';
import { until } from '../../support/until.ts';

const RUN = 'run_1a2b3c4d5e6f70819203a4b5c6d7e8f9';
const { events } = sampleRun({ tasks: 8, cap: { usd: 5 } });
// Parts of the output that the journal does not store.
const kept = events.filter(({ type }) => !type.endsWith('_delta'));

async function shelfWith(records: readonly Recorded[]): Promise<Shelf> {
  const shelf = await Shelf.empty();
  await shelf.keepRun(RUN, records);
  return shelf;
}

test('replay prints the original lines of a run and writes nothing', async () => {
  const shelf = await shelfWith(kept);
  const live = new FakeIo({ cwd: shelf.cwd, env: { NO_COLOR: '1' } });
  const view = runLinesView(live.io.stdout, live.io.env);
  for (const event of events) await view.show(event);
  const before = await readdir(shelf.home, { recursive: true });
  const { code, stdout, stderr } = await shelf.drover(['replay', RUN]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toBe(`${live.stdout}the same as recorded: ${kept.length} events\n`);
  expect(await readdir(shelf.home, { recursive: true })).toEqual(before);
});

test('replay --json prints the events of a run as recorded', async () => {
  const shelf = await shelfWith(kept);
  const { code, stdout } = await shelf.drover(['replay', RUN, '--json']);
  const told = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  expect([code, told]).toEqual([0, retellJournal(await shelf.recordsOf(RUN))]);
  expect((await shelf.drover(['replay', RUN, '--view', 'silent'])).stdout).toBe('');
});

test('replay on a terminal shows the dashboard at recorded speed', async () => {
  const shelf = await shelfWith(kept);
  const { code, stdout } = await shelf.drover(['replay', RUN, '--speed', '0'], { columns: 80 });
  expect(code).toBe(0);
  const elapsedMs = Date.parse(kept.at(-1)?.at ?? '') - Date.parse(kept[0]?.at ?? '');
  expect(stdout).toContain('Replace moment with date-fns everywhere');
  expect(stdout).toContain(`6 of 8 tasks landed · ${(elapsedMs / 1000).toFixed(1)} s`);
});

test('replay shows an interrupted and resumed run as one picture with one report', async () => {
  const teller = new Teller(RUN);
  const end = { exitCode: 130, tasks: [], usage: NO_USAGE } as const;
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings });
  teller.tell({ type: 'run_end', outcome: 'cancelled', reason: 'interrupted', ...end });
  teller.tell({ type: 'run_start', resumed: true, ...sampleSettings });
  teller.tell({ type: 'run_end', outcome: 'done', ...end, exitCode: 0 });
  const shelf = await shelfWith(teller.events);
  const reports = async (columns?: number) => {
    const given = columns === undefined ? {} : { columns };
    const { stdout } = await shelf.drover(['replay', RUN, '--speed', '0'], given);
    return stdout.match(/[✓✗] (done|cancelled)/g);
  };
  expect([await reports(80), await reports()]).toEqual([['✓ done'], ['✗ cancelled', '✓ done']]);
});

test('replay waits the recorded time divided by the speed, and skips idle time', async () => {
  const teller = new Teller(RUN);
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings });
  teller.tell({ type: 'warning', message: 'one' }, {}, 60_000);
  teller.tell({ type: 'run_start', resumed: true, ...sampleSettings }, {}, 86_400_000);
  teller.tell({ type: 'warning', message: 'two' }, {}, 60_000);
  const shelf = await shelfWith(teller.events);
  const begun = performance.now();
  const { code, stdout } = await shelf.drover(['replay', RUN, '--speed', '400', '--view', 'lines']);
  const tookMs = performance.now() - begun;
  expect([code, stdout.trimEnd().split('\n').slice(-2)]).toEqual([
    0,
    ['the run was interrupted here', 'the same as recorded: 4 events'],
  ]);
  expect(tookMs).toBeGreaterThan(290);
  expect(tookMs).toBeLessThan(20_000);
});

test('replay reports a run whose end contradicts its events', async () => {
  const wrong = kept.map((event) =>
    event.type === 'run_end'
      ? { ...event, tasks: event.tasks.map((row) => (row.task === 'task-4' ? { ...row, attempts: 7 } : row)) }
      : event,
  );
  const shelf = await shelfWith(wrong);
  const { code, stderr } = await shelf.drover(['replay', RUN, '--view', 'silent']);
  expect([code, stderr.split('\n')[0]]).toEqual([1, 'drover: task task-4 is not as recorded']);
});

test('SIGINT ends the replay of a run', async () => {
  const shelf = await shelfWith(kept);
  const fake = new FakeIo({ cwd: shelf.cwd });
  const replaying = main(['replay', RUN, '--speed', '1', '--view', 'lines'], fake.io);
  await until(() => fake.stdout.includes('begins'));
  fake.stop('SIGINT');
  expect(await replaying).toBe(130);
});

test('replay shows and then retracts partial answers of each worker after a crash', () => {
  const at = { v: 1, at: 'now', run: RUN };
  const place = (worker: number) => ({ worker, task: `t${worker}`, attempt: 1, turn: 1, step: 1 });
  const note = (worker: number, text: string) =>
    ({ ...at, ...place(worker), seq: worker, type: 'partial', part: 0, kind: 'text', from: 0, text }) as JsonObject;
  const resumed = { ...at, seq: 9, type: 'run_start', resumed: true } as JsonObject;
  const told = retellJournal([note(1, 'half'), note(2, 'an'), note(1, ' an answer'), resumed]);
  const discarded = { type: 'attempt_discarded', reason: 'drover was stopped before the answer was whole' };
  expect(told).toEqual([
    { ...at, ...place(1), seq: 1, type: 'text_delta', part: 0, delta: 'half' },
    { ...at, ...place(1), seq: 1, type: 'text_delta', part: 0, delta: ' an answer' },
    { ...at, ...place(1), seq: 1, ...discarded },
    { ...at, ...place(2), seq: 2, type: 'text_delta', part: 0, delta: 'an' },
    { ...at, ...place(2), seq: 2, ...discarded },
    resumed,
  ]);
});

test('replay refuses options that a run does not support', async () => {
  const shelf = await shelfWith([]);
  await shelf.keepSession('s', 'go', '2020-01-14T09:00:00.000Z');
  const said = async (...argv: readonly string[]) => {
    const { code, stderr } = await shelf.drover(['replay', ...argv]);
    return [code, stderr];
  };
  expect(await said(RUN)).toEqual([2, `drover: run ${RUN} has not begun, so there is nothing to replay\n`]);
  expect(await said('s', '--speed', '2')).toEqual([2, 'drover: --speed is only for runs, and this is a session\n']);
  expect(await said('s', '--speed', 'fast')).toEqual([
    2,
    "drover: --speed: 'fast' is not a speed; write it like 0.5, 1 or 20, or 0 for all at once\n",
  ]);
});
