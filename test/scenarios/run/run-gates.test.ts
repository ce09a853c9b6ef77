// The gates of a run whose tasks change nothing: they are run on its base, and a red one ends the run with 4.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, says, statuses, submits, told, writes } from '../../support/run/run-desk.ts';

const IDLE = { answers: [submits('it is fine as it is')] };
const SAID = "it changed nothing, and the gate 'grep -q two a.txt' fails on its base:";
const RED = ['--gate', 'grep -q two a.txt'];

test('a run that changes nothing ends with 4 when a gate fails on its base', async () => {
  const desk = await RunDesk.with(planned({ one: IDLE, two: IDLE }));
  const files = ['--junit', '../junit.xml', '--summary', '../summary.md'];
  const { code, end, events } = await desk.run(['run', 'change nothing', ...RED, '--allow-partial', ...files]);
  expect([code, end.exitCode, end.outcome]).toEqual([4, 4, 'incomplete']);
  expect(end.failure).toMatchObject({ kind: 'gate.failed', command: 'grep -q two a.txt', unchanged: true });
  expect(statuses(end)).toEqual({ one: 'gate_failed', two: 'gate_failed' });
  const gates = events.flatMap((event) => (event.type === 'gate_end' ? [event.passed] : []));
  expect(gates).toEqual([false]);
  const read = (name: string) => readFile(join(desk.folder, name), 'utf8');
  expect(await read('junit.xml')).toContain('tests="2" failures="2" errors="0" skipped="0"');
  expect(await read('junit.xml')).toMatch(/<failure message="it changed nothing, [^"]*" type="gate_failed">/);
  expect(await read('summary.md')).toContain(SAID);
  const shown = await desk.drover(['show', end.run ?? '']);
  expect(shown.stdout).toContain('0 of 2 tasks landed');
  expect(shown.stdout).toContain(SAID);
  expect(shown.stdout).not.toContain('drover resume');
});

test('a run that changes nothing is done when its gates pass on its base', async () => {
  const desk = await RunDesk.with(planned({ one: IDLE, two: IDLE }));
  const { code, end, events } = await desk.run(['run', 'change nothing', '--gate', 'grep -q one a.txt']);
  expect([code, statuses(end)]).toEqual([0, { one: 'done', two: 'done' }]);
  const gates = events.flatMap((event) => (event.type === 'gate_end' ? [event.passed] : []));
  expect(gates).toEqual([true]);
});

test('a run of tasks that read ends with 4 when a gate fails on its base', async () => {
  const desk = await RunDesk.with(planned({ look: { mode: 'read', answers: [submits('a says one')] } }));
  const { code, end } = await desk.run(['run', 'what does a say?', ...RED]);
  expect([code, statuses(end)]).toEqual([4, { look: 'done' }]);
});

test('a run without a plan ends with 4 when a gate fails on its base', async () => {
  const desk = await RunDesk.with({ answers: [says('Nothing has to be done.')] });
  const { code, end } = await desk.run(['run', 'what does a say?', ...RED]);
  expect([code, end.tasks, end.answer]).toEqual([4, [], 'Nothing has to be done.']);
});

test('a task without changes is done when another one fixes the red gate', async () => {
  const mends = { answers: [writes('a.txt', 'two\n'), submits('two')] };
  const desk = await RunDesk.with(planned({ idle: IDLE, mends }));
  const { code, end } = await desk.run(['run', 'mend the gate', ...RED]);
  expect([code, statuses(end)]).toEqual([0, { idle: 'done', mends: 'landed' }]);
});

test('a resumed run that changes nothing ends with 4 when a gate fails on its base', async () => {
  const desk = await RunDesk.with(planned({ one: IDLE, two: IDLE }));
  const go = join(desk.folder, 'go');
  const open = ['--sandbox', 'off', '--workers', '0', '--json'];
  const typed = ['run', 'change nothing', '--gate', `test -e ${go} || sleep 600; false`, ...open];
  const first = told(await desk.interrupted(typed, (stdout) => stdout.includes('"gate_start"')));
  expect([first.code, statuses(first.end)]).toEqual([130, { one: 'done', two: 'done' }]);
  await writeFile(go, '');
  const { code, end } = told(await desk.drover(['resume', first.end.run ?? '', ...open]));
  expect([code, statuses(end)]).toEqual([4, { one: 'gate_failed', two: 'gate_failed' }]);
});

test('a resumed task that fixes the gate makes a task without changes done', async () => {
  const turns = [calls('shell', { command: 'make' }), says('Done!'), writes('a.txt', 'two\n'), submits('two')];
  const desk = await RunDesk.with(planned({ idle: IDLE, mends: { answers: [() => turns.shift()] } }));
  const first = await desk.run(['run', 'mend the gate', ...RED, '--sandbox', 'off']);
  expect([first.code, statuses(first.end)]).toEqual([4, { idle: 'gate_failed', mends: 'failed' }]);
  const { code, end } = await desk.run(['resume', first.end.run ?? '', '--sandbox', 'off']);
  expect([code, statuses(end)]).toEqual([0, { idle: 'done', mends: 'landed' }]);
});
