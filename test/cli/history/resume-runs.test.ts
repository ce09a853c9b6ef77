// Resuming runs: after an interruption, with a larger budget, with another key; and refused resumes.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runJournalPath } from '@drover/coordinator/run/journal';
import { Lock } from '@drover/core/journal/file/lock';
import type { AnswerSource, Script } from '@drover/rehearsal/script';
import { expect, test } from 'vitest';
import { main } from '../../../bin/drover.ts';
import { calls, planned, RunDesk, says, statuses, submits, writes } from '../../support/run/run-desk.ts';
import { Desk } from '../desk.ts';
import { FakeIo, temporaryFolder } from '../fake-io.ts';
import { until } from '../../support/until.ts';

const writesFile = (name: string) => ({ answers: [writes(`${name}.txt`, `${name}\n`), submits(name)] });

/** Interrupts drover with SIGINT as soon as it has printed this text. */
async function interrupted(desk: RunDesk, argv: readonly string[], text: string): Promise<number> {
  const env = { DROVER_HOME: desk.home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  const fake = new FakeIo({ cwd: desk.repository, env });
  const running = main([...argv, '--model', 'anthropic/scripted', '--workers', '0', '--json'], fake.io);
  await until(() => fake.stdout.includes(text));
  fake.stop('SIGINT');
  return running;
}

const SLOW = planned({
  quick: writesFile('quick'),
  slow: { answers: [calls('shell', { command: 'sleep 60' }), writes('slow.txt', 'slow\n'), submits('slow')] },
});

test('resume continues an interrupted run with its plan and repeats no request', async () => {
  const desk = await RunDesk.with(SLOW);
  expect(await interrupted(desk, ['run', 'do two things', '--yes'], '"summary":"shell: sleep 60"')).toBe(130);
  const before = desk.server.requests.length;
  const { code, end, events } = await desk.run(['resume', '--yes']);
  expect([code, end.outcome, statuses(end), end.answer]).toEqual([
    0,
    'done',
    { quick: 'landed', slow: 'landed' },
    'All is done.',
  ]);
  expect(desk.server.requests.slice(before).map(({ agent }) => agent)).toEqual(['slow', 'slow', 'default']);
  expect(events[0]).toMatchObject({ type: 'run_start', resumed: true });
  expect(events.filter(({ type }) => type === 'plan_ready')).toEqual([]);
  expect(desk.delivered(end.run ?? '')).toEqual({ 'a.txt': 'one', 'quick.txt': 'quick', 'slow.txt': 'slow' });
});

test('resume works repeatedly, and the user sees the earlier tasks', async () => {
  const desk = await RunDesk.with(
    planned({
      quick: writesFile('quick'),
      slow: {
        answers: [1, 2].map((at) => calls('shell', { command: `sleep 6${at}` })).concat(submits('slow')),
        mode: 'write',
      },
    }),
  );
  await interrupted(desk, ['run', 'do two things', '--yes'], '"summary":"shell: sleep 61"');
  const env = { DROVER_HOME: desk.home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  const fake = new FakeIo({ cwd: desk.repository, env });
  const running = main(['resume', '--yes', '--view', 'lines'], fake.io);
  await until(() => fake.stdout.includes('sleep 62'));
  fake.stop('SIGTERM');
  expect(await running).toBe(143);
  const { code, stdout } = await desk.drover(['resume', '--yes', '--view', 'lines']);
  expect(code).toBe(0);
  expect(stdout.replaceAll(/^\d\d:\d\d:\d\d/gm, '<clock>')).toContain('<clock>  slow         ✓ no change  ');
  expect(stdout).toMatch(
    /✓ done {2}1 of 2 tasks landed, 1 had nothing to change · .*\n\nLanded \(1\)\n {2}✓ quick {2}do quick[^]*In the words of the coordinator\n {2}All is done\.\n/,
  );
});

test('resume with a larger budget retries tasks the budget stopped, and dependents', async () => {
  const desk = await RunDesk.with(
    planned({
      cheap: writesFile('cheap'),
      first: { answers: [{ ...writes('first.txt', 'first\n'), usage: { output: 900_000 } }, submits('first')] },
      second: { ...writesFile('second'), dependsOn: ['first'] },
    }),
  );
  const poor = await desk.run(['run', 'do three things', '--budget', '900ktok', '--yes']);
  expect([poor.code, statuses(poor.end)]).toEqual([6, { cheap: 'landed', first: 'failed', second: 'skipped' }]);
  const short = (poor.end.run ?? '').slice(4, 12);

  const again = await desk.drover(['resume']);
  const less = await desk.drover(['resume', '--budget', '1ktok']);
  const rich = await desk.run(['resume', '--budget', '9mtok']);

  const spent = poor.end.usage.input + poor.end.usage.output + poor.end.usage.cacheRead + poor.end.usage.cacheWrite;
  const words = `${spent.toLocaleString('en')} tokens`;
  expect([again, less]).toEqual([
    {
      code: 2,
      stdout: '',
      stderr: `drover: run ${short} has spent ${words}, and its budget of 900,000 tokens allows no further request; resume with more: drover resume ${short} --budget 1800000tok\n`,
    },
    expect.objectContaining({
      code: 2,
      stderr: expect.stringContaining(`has spent ${words}, and its budget of 1,000`),
    }),
  ]);
  expect([rich.code, statuses(rich.end)]).toEqual([0, { cheap: 'landed', first: 'landed', second: 'landed' }]);
  expect(rich.end.tasks.map(({ task, attempts }) => [task, attempts])).toEqual([
    ['cheap', 1],
    ['first', 2],
    ['second', 1],
  ]);
});

test('resume retries what a provider refused, also twice, and keeps partial work', async () => {
  let refusals = 2;
  const moody: AnswerSource = ({ results }) => {
    if (results.some(({ output }) => output.includes('half.txt')))
      return refusals-- > 0 ? { fault: { fault: 'status', status: 401 } } : submits('at last');
    return writes('half.txt', `${refusals}\n`);
  };
  const tasks = { good: writesFile('good').answers, moody: [moody] };
  const plan = Object.keys(tasks).map((id) => ({ id, title: `do ${id}`, prompt: `Please do ${id}.` }));
  const agents = Object.entries(tasks).map(([id, answers]) => [id, { assigned: `Your task is ${id}:`, answers }]);
  const script: Script = {
    order: 'conversation',
    answers: [calls('submit_plan', { tasks: plan }), says('Well.')],
    agents: Object.fromEntries(agents) as Script['agents'] & {},
  };
  const desk = await RunDesk.with(script);
  const ends = [
    await desk.run(['run', 'do two things', '--yes']),
    await desk.run(['resume']),
    await desk.run(['resume']),
  ];
  expect(ends.map(({ code, end }) => [code, statuses(end)])).toEqual([
    [3, { good: 'landed', moody: 'failed' }],
    [3, { good: 'landed', moody: 'failed' }],
    [0, { good: 'landed', moody: 'landed' }],
  ]);
  expect(ends.map(({ end }) => [end.failure, end.delivered?.branch])).toEqual(
    ends.map(() => [undefined, desk.resultBranch(ends[0]?.end.run ?? '')]),
  );
  const half = ends.slice(0, 2).map(({ end }) => desk.git('show', `${end.tasks[1]?.branch}:half.txt`));
  expect(half).toEqual(['2', '1']);
  expect(Object.keys(desk.delivered(ends[2]?.end.run ?? ''))).toEqual(['a.txt', 'good.txt', 'half.txt']);
});

test('resume does not retry permanent failures, and says what to do instead', async () => {
  const desk = await RunDesk.with(
    planned({
      fine: writesFile('fine'),
      refused: { answers: [{ stop: 'refusal', text: 'no' }] },
      later: { ...writesFile('later'), dependsOn: ['refused'] },
    }),
  );
  const { code, end } = await desk.run(['run', 'do three things', '--yes']);
  expect([code, statuses(end)]).toEqual([3, { fine: 'landed', refused: 'failed', later: 'skipped' }]);
  const short = (end.run ?? '').slice(4, 12);
  expect(await desk.drover(['resume', short])).toEqual({
    code: 2,
    stdout: '',
    stderr: `drover: run ${short} has ended, and resuming it would not help the tasks that did not land (refused: the model declined: The rehearsed model declines.; later: it depends on refused, which is failed); drover show ${short} says more; try them again with: drover retry ${short}\n`,
  });
  expect((await desk.drover(['resume'])).stderr).toBe(
    `drover: no run or session was interrupted; the newest is ${short} (do three things), which is incomplete: see why with: drover show ${short}\n`,
  );
});

test('resume refuses a finished run and a live run', async () => {
  const desk = await RunDesk.with(planned({ fine: writesFile('fine') }));
  const { end } = await desk.run(['run', 'do it', '--yes']);
  const short = (end.run ?? '').slice(4, 12);
  expect((await desk.drover(['resume', short])).stderr).toBe(
    `drover: run ${short} is done; look at it with: drover show ${short}\n`,
  );
  const path = runJournalPath(desk.home, end.run ?? '');
  const lock = Lock.take(`${path}.lock`);
  const busy = await desk.drover(['resume', short]);
  lock?.release();
  expect(busy).toEqual({
    code: 2,
    stdout: '',
    stderr: `drover: process ${process.pid} is writing ${path}: wait for it, or stop it\n`,
  });
});

test('resume stores settings that may change, and keeps the others', async () => {
  const desk = await RunDesk.with(SLOW);
  await interrupted(desk, ['run', 'x', '--yes', '--timeout', '10m', '--gate', 'true'], '"summary":"shell: sleep 60"');
  const chosen = ['--workers', '0', '--timeout', '20m', '--turns', '9', '--budget', '2mtok'];
  const { events } = await desk.run(['resume', '--yes', ...chosen]);
  expect(events[0]).toMatchObject({
    type: 'run_start',
    goal: 'x',
    gates: ['true'],
    timeoutMs: 1_200_000,
    cap: { tokens: 2_000_000 },
    taskLimits: { stepsMax: 9 },
  });
});

test('resume stays on the run’s branch, wherever the user is now', async () => {
  const desk = await RunDesk.with(SLOW);
  await interrupted(desk, ['run', 'x', '--yes', '--deliver', 'merge'], '"summary":"shell: sleep 60"');
  desk.git('switch', '-q', '-c', 'elsewhere');
  const { code, end } = await desk.run(['resume', '--yes']);
  expect([code, end.delivered?.deliver, end.delivered?.instead]).toEqual([
    0,
    'branch',
    expect.stringContaining('main'),
  ]);
  expect(desk.git('rev-parse', 'elsewhere')).toBe(desk.git('rev-parse', 'main'));
});

test('resume of a run refuses session flags and an expired deadline', async () => {
  const desk = await RunDesk.with(SLOW);
  await interrupted(desk, ['run', 'x', '--yes'], '"summary":"shell: sleep 60"');
  const said = async (...argv: readonly string[]) => {
    const { code, stderr } = await desk.drover(['resume', ...argv]);
    return [code, stderr.replaceAll(/\b[0-9a-f]{8}\b/g, '<id>').replace(/[\d.]+ m?s,/, '<time>,')];
  };
  expect(await said('--cwd', '.')).toEqual([2, 'drover: --cwd is for sessions; a run stays in its repository\n']);
  expect(await said('--gate', 'true')).toEqual([2, 'drover: --gate is for sessions; a run keeps its own\n']);
  expect(await said('--timeout', '1ms')).toEqual([
    2,
    'drover: run <id> has worked for <time>, and its time limit is 1 ms; resume with more: drover resume <id> --timeout 1m\n',
  ]);
});

test('resume of a session refuses run flags', async () => {
  const desk = await Desk.with('answers: [{calls: [{name: list, args: {}}]}, {text: Done.}]');
  await desk.exec('s', 'go', ['--turns', '1']);
  for (const flag of ['--workers 2', '--view dashboard', '--allow-partial', '--result x.json']) {
    const { code, stderr } = await desk.run(['resume', 's', ...flag.split(' ')]);
    const named = flag === '--view dashboard' ? flag : flag.split(' ')[0];
    expect([code, stderr]).toEqual([2, `drover: ${named} is only for runs, and this is a session\n`]);
  }
});

test('resume without an id takes the newest run or session', async () => {
  const desk = await RunDesk.with(SLOW);
  await interrupted(desk, ['run', 'x', '--yes'], '"summary":"shell: sleep 60"');
  await desk.drover(['exec', 'go', '--session', 's', '--turns', '1', '--model', 'anthropic/scripted', '--json']);
  const newest = (await desk.drover(['runs', '--json'])).stdout.split('\n', 1)[0] ?? '';
  expect(JSON.parse(newest)).toMatchObject({ kind: 'session', id: 's', state: 'incomplete' });
  const session = await desk.drover(['resume', '--turns', '1', '--view', 'lines']);
  expect(session.stdout).toContain('resuming session s');
});

test('resume without an id only names an interrupted run of another folder', async () => {
  const desk = await RunDesk.with(SLOW);
  await interrupted(desk, ['run', 'x', '--yes'], '"summary":"shell: sleep 60"');
  const before = desk.server.requests.length;
  const { code, stderr } = await desk.drover(['resume', '--yes'], { cwd: desk.folder });
  expect([code, desk.server.requests.length]).toEqual([2, before]);
  expect(stderr).toMatch(
    /nothing was interrupted in this folder; in .*project it was ([0-9a-f]{8}) \(x\): drover resume \1/,
  );
});

test('resume continues a cut-off attempt in its workspace and makes no extra ones', async () => {
  const sign = join(await temporaryFolder(), 'at-work');
  const waits = calls('shell', { command: `touch ${sign}; sleep 60` });
  const desk = await RunDesk.with(planned({ one: { answers: [writes('a.txt', '1\n'), waits, submits('done')] } }));
  const ran = await desk.interrupted(['run', 'go', '--yes', '--workers', '2', '--sandbox', 'off'], () =>
    existsSync(sign),
  );
  const folder = join(desk.home, 'workspaces');
  const slots = () =>
    readdirSync(join(folder, readdirSync(folder)[0] ?? '', 'slots')).filter((name) => /^\d+$/.test(name));
  const before = slots();
  const { end } = await desk.run(['resume', '--yes']);
  expect([ran.code, end.exitCode, before, slots()]).toEqual([130, 0, ['1', '2'], ['1', '2']]);
});
