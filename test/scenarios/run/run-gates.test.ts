// The gates of a run on its base commit: they run while the coordinator plans, and a red one ends the run with 4.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BatchDesk, noisyFiles, SPEC, tidying } from '../../support/run/batch-desk.ts';
import { calls, planned, RunDesk, says, statuses, submits, told, writes } from '../../support/run/run-desk.ts';

const IDLE = { answers: [submits('it is fine as it is')] };
const RED = ['--gate', 'grep -q two a.txt'];
const SAID = "the gate 'grep -q two a.txt' fails on the base commit, so no worker was started:";

const gateResults = ({ events }: Awaited<ReturnType<RunDesk['run']>>) =>
  events.flatMap((event) => (event.type === 'gate_end' ? [[event.command, event.passed, event.base ?? false]] : []));
const workerRequests = ({ server }: RunDesk) =>
  server.requests.filter(({ agent }) => agent === 'one' || agent === 'two').length;

test('a gate that fails on the base ends the run with 4 before a worker starts', async () => {
  const desk = await RunDesk.with(planned({ one: IDLE, two: IDLE }));
  const files = ['--junit', '../junit.xml', '--summary', '../summary.md'];
  const ran = await desk.run(['run', 'change nothing', ...RED, '--allow-partial', ...files]);
  expect([ran.code, ran.end.exitCode, ran.end.outcome]).toEqual([4, 4, 'incomplete']);
  expect(ran.end.failure).toMatchObject({ kind: 'base.failed', command: 'grep -q two a.txt' });
  expect(ran.end.reason).toContain('--allow-red-base');
  expect(workerRequests(desk)).toBe(0);
  expect(gateResults(ran)).toEqual([['grep -q two a.txt', false, true]]);
  expect(await readFile(join(desk.folder, 'summary.md'), 'utf8')).toContain(SAID);
  expect((await desk.drover(['show', ran.end.run ?? ''])).stdout).toContain(SAID);
});

test('a red base names missing dependencies as the likely cause', async () => {
  const desk = await RunDesk.with(planned({ one: IDLE }));
  const { code, end } = await desk.run(['run', 'go', '--gate', 'sh -c mytest']);
  expect(code).toBe(4);
  expect(end.reason).toMatch(/mytest: (command )?not found[^]*cause: the workspace has no dependencies; a new run/);
});

test('gates pass on the base once, and a run that changes nothing is done', async () => {
  const desk = await RunDesk.with(planned({ one: IDLE, two: IDLE }));
  const ran = await desk.run(['run', 'change nothing', '--gate', 'grep -q one a.txt']);
  expect([ran.code, statuses(ran.end)]).toEqual([0, { one: 'done', two: 'done' }]);
  expect(gateResults(ran)).toEqual([['grep -q one a.txt', true, true]]);
});

test('a run without a plan ends with 4 when a gate fails on its base', async () => {
  const desk = await RunDesk.with({ answers: [says('Nothing has to be done.')] });
  const { code, end } = await desk.run(['run', 'what does a say?', ...RED]);
  expect([code, end.tasks]).toEqual([4, []]);
});

test('--allow-red-base lands work that fixes a red gate', async () => {
  const mends = { answers: [writes('a.txt', 'two\n'), submits('two')] };
  const desk = await RunDesk.with(planned({ idle: IDLE, mends }));
  const { code, end } = await desk.run(['run', 'mend the gate', ...RED, '--allow-red-base']);
  expect([code, statuses(end)]).toEqual([0, { idle: 'done', mends: 'landed' }]);
});

test('--allow-red-base lands work under a gate that stays red, and says so', async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [writes('b.txt', 'b\n'), submits('b')] } }));
  const { code, end, events } = await desk.run(['run', 'add b', ...RED, '--allow-red-base']);
  expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
  const warnings = events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));
  expect(warnings).toContain("the gate 'grep -q two a.txt' fails on the base commit, so it may stay red");
});

test('--allow-red-base leaves out the task that turns a green gate red', async () => {
  const desk = await RunDesk.with(
    planned({
      good: { answers: [writes('b.txt', 'b\n'), submits('b')] },
      bad: { answers: [writes('bad.txt', 'bad\n'), submits('bad')] },
      late: { answers: [writes('c.txt', 'c\n'), submits('c')] },
    }),
  );
  const gates = [...RED, '--gate', 'test ! -e bad.txt'];
  const { end } = await desk.run(['run', 'go', ...gates, '--allow-red-base']);
  expect(statuses(end)).toEqual({ good: 'landed', bad: 'gate_failed', late: 'landed' });
});

test('--allow-red-base keeps a gate green that a landed task has fixed', async () => {
  const desk = await RunDesk.with(
    planned({
      mends: { files: ['a.txt'], answers: [writes('a.txt', 'two\n'), submits('two')] },
      breaks: { dependsOn: ['mends'], answers: [writes('a.txt', 'one\n'), submits('one')] },
    }),
  );
  const { end } = await desk.run(['run', 'go', ...RED, '--allow-red-base']);
  expect(statuses(end)).toEqual({ mends: 'landed', breaks: 'gate_failed' });
});

test('resume tests a red base again, and starts workers when it is green', async () => {
  const desk = await RunDesk.with(planned({ one: IDLE }));
  const go = join(desk.folder, 'go');
  const first = await desk.run(['run', 'change nothing', '--gate', `test -e ${go}`, '--sandbox', 'off']);
  expect([first.code, workerRequests(desk)]).toEqual([4, 0]);
  await writeFile(go, '');
  const { code, end } = await desk.run(['resume', first.end.run ?? '', '--sandbox', 'off', '--workers', '0']);
  expect([code, statuses(end)]).toEqual([0, { one: 'done' }]);
});

test('resume with --allow-red-base carries out a run that a red base stopped', async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [writes('b.txt', 'b\n'), submits('b')] } }));
  const first = await desk.run(['run', 'go', ...RED]);
  const resumed = await desk.run(['resume', first.end.run ?? '', '--allow-red-base', '--workers', '0']);
  expect([first.code, resumed.code, statuses(resumed.end)]).toEqual([4, 0, { one: 'landed' }]);
});

test('resume does not test a green base again', async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [writes('b.txt', 'b\n'), submits('b')] } }));
  const typed = ['run', 'go', '--gate', 'true', '--workers', '0', '--json'];
  const first = told(await desk.interrupted(typed, (stdout) => stdout.includes('"task_start"')));
  expect(first.code).toBe(130);
  const resumed = await desk.run(['resume', first.end.run ?? '', '--workers', '0']);
  expect([resumed.code, statuses(resumed.end)]).toEqual([0, { one: 'landed' }]);
  expect(gateResults(resumed)).toEqual([['true', true, false]]);
});

test('a resumed task that fixes the gate makes a task without changes done', async () => {
  const turns = [calls('shell', { command: 'make' }), says('Done!'), writes('a.txt', 'two\n'), submits('two')];
  const desk = await RunDesk.with(planned({ idle: IDLE, mends: { answers: [() => turns.shift()] } }));
  const first = await desk.run(['run', 'mend the gate', ...RED, '--allow-red-base', '--sandbox', 'off']);
  expect(statuses(first.end)).toEqual({ idle: 'done', mends: 'failed' });
  const { code, end } = await desk.run(['resume', first.end.run ?? '', '--sandbox', 'off']);
  expect([code, statuses(end)]).toEqual([0, { idle: 'done', mends: 'landed' }]);
});

test('a batch of 60 tasks on a red base sends no request', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(60), `${SPEC}gates: ["exit 3"]\n`);
  const { code, stderr, stdout } = await batch.run();
  expect([code, batch.desk.server.requests.length]).toEqual([4, 0]);
  expect(`${stderr}${stdout}`).toContain('fails on the base commit, so no worker was started');
});
