// Endings of runs: each has its exit code, its last event, and a next step.

import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { closedPort } from '../../providers/http/loopback.ts';
import { proves } from '../../support/proves.ts';
import { calls, planned, RunDesk, says, statuses, submits, told, writes } from '../../support/run/run-desk.ts';

const TWO = {
  one: { answers: [writes('one.txt', '1\n'), submits('one')] },
  two: { dependsOn: ['one'], answers: [writes('two.txt', '2\n'), submits('two')] },
};

test('an interrupted run exits 130 with its last event, and resumes to the same end', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const first = told(
    await desk.interrupted(['run', 'make two files', '--workers', '0', '--json'], () =>
      desk.server.requests.some(({ agent }) => agent === 'two'),
    ),
  );
  expect([first.code, first.end.exitCode, first.end.outcome]).toEqual([130, 130, 'cancelled']);
  expect([statuses(first.end), first.end.delivered]).toEqual([{ one: 'landed', two: 'cancelled' }, undefined]);

  const { code, end } = await desk.run(['resume', first.end.run ?? '']);
  expect([code, statuses(end)]).toEqual([0, { one: 'landed', two: 'landed' }]);
  expect(desk.delivered(end.run ?? '')).toEqual({ 'a.txt': 'one', 'one.txt': '1', 'two.txt': '2' });
  expect(desk.server.requests.filter(({ agent }) => agent === 'one')).toHaveLength(2);
});

test('the deadline ends a run with 7, and delivers its landings', async () => {
  const desk = await RunDesk.with(
    planned({ ...TWO, slow: { dependsOn: ['two'], answers: [{ ...says('at last'), delayMs: 60_000 }] } }),
  );
  const { code, end } = await desk.run(['run', 'make files', '--timeout', '4s']);
  expect([code, end.failure?.kind, statuses(end)['one'], statuses(end)['slow']]).toEqual([
    7,
    'limit.reached',
    'landed',
    'cancelled',
  ]);
  expect(Object.keys(desk.delivered(end.run ?? ''))).toContain('one.txt');
});

test('the budget ends a run with 6, and is never exceeded', async () => {
  const dear = { ...writes('dear.txt', 'dear\n'), usage: { input: 30_000 } };
  const desk = await RunDesk.with(
    planned({ dear: { answers: [dear, dear, dear, submits('dear')] }, next: { dependsOn: ['dear'], answers: [] } }),
  );
  const { code, end, events } = await desk.run(['run', 'make files', '--budget', '100ktok']);
  expect([code, statuses(end), end.tasks[0]?.failure]).toEqual([
    6,
    { dear: 'failed', next: 'skipped' },
    { kind: 'limit.reached', limit: 'budget', message: 'the budget does not allow another request' },
  ]);
  const spent = events.flatMap((event) => (event.type === 'budget' ? [event.spent] : []));
  expect(Math.max(...spent)).toBeLessThanOrEqual(100_000);
});

test('a run shows each retry while its provider refuses connections', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const url = await closedPort();
  const env = { ANTHROPIC_BASE_URL: url };
  const isSecond = (stdout: string) => stdout.includes('retry 2');
  const { stdout } = await desk.interrupted(['run', 'make two files', '--workers', '0'], isSecond, { env });
  const refused = `the provider is unavailable: ${new URL(url).host} refused the connection (ECONNREFUSED)`;
  const shown = stdout.split('\n').flatMap((line) => /retry.*/.exec(line)?.[0].replace(/in [\d.]+ s/, 'in … s') ?? []);
  expect(shown.slice(0, 2)).toEqual([
    `retrying: retry 1 of 7 in … s: ${refused}`,
    `retrying: retry 2 of 7 in … s: ${refused}`,
  ]);
});

test('a refused key ends a run with 9 before any task starts', async () => {
  const desk = await RunDesk.with({ ...planned(TWO), keys: ['another'] });
  const { code, end } = await desk.run(['run', 'make files']);
  expect([code, end.outcome, end.failure?.kind, end.tasks]).toEqual([9, 'error', 'provider.rejected', []]);
});

test('a denied call that the work needs ends a run with 8', async () => {
  const desk = await RunDesk.with(
    planned({ one: { answers: [calls('shell', { command: 'make install' }), says('I may not')] } }),
  );
  const { code, end } = await desk.run(['run', 'install it', '--sandbox', 'off']);
  expect([code, statuses(end)]).toEqual([8, { one: 'failed' }]);
  expect(end.tasks[0]?.reason).toContain('make install');
});

test('every worker obeys the rules: denied calls are refused, allowed ones run', async () => {
  const desk = await RunDesk.with(
    planned({
      one: {
        answers: [
          calls('shell', { command: 'make install' }),
          calls('shell', { command: 'node --version' }),
          submits('one'),
        ],
      },
    }),
  );
  const rules = ['--yes', '--deny', 'shell(make *)', '--allow', 'shell(node *)'];
  const { events } = await desk.run(['run', 'install it', ...rules]);
  const results = events.flatMap((event) =>
    event.type === 'tool_execution_end' && event.name === 'shell' ? [event.isError] : [],
  );
  expect(results).toEqual([true, false]);
});

proves(
  'checkout.untouched',
  'a checkout changed meanwhile is named, nothing is delivered, the work is kept',
  async () => {
    const desk = await RunDesk.with(planned(TWO));
    const outside = join(desk.repository, 'a.txt');
    const { server } = desk;
    let isDone = false;
    const touch = setInterval(() => {
      if (isDone || !server.requests.some(({ agent }) => agent === 'one')) return;
      isDone = true;
      writeFileSync(outside, 'somebody else was here\n');
    }, 5);
    const { code, end } = await desk.run(['run', 'make files']).finally(() => clearInterval(touch));
    expect([code, end.failure?.kind, end.delivered]).toEqual([8, 'checkout.changed', undefined]);
    expect(end.reason).toBe(
      'your checkout was changed during the run, so nothing was delivered; the work is kept. Changed: a.txt',
    );
    expect(desk.git('branch', '--list', 'drover/*')).toBe('');
    expect(statuses(end)).toEqual({ one: 'landed', two: 'landed' });

    const { stdout } = await desk.drover(['show', end.run ?? ''], { columns: 120, env: { NO_COLOR: '1' } });
    expect(stdout).toMatch(/drover resume \w+ +deliver it, once your checkout is as you want it\n/);
    const resumed = await desk.drover(['resume', end.run ?? '', '--yes', '--json']);
    expect([resumed.code, desk.delivered(end.run ?? '')]).toMatchObject([0, { 'one.txt': '1', 'two.txt': '2' }]);
  },
);

test('the audit finds a shell command that reached the checkout', async () => {
  const desk = await RunDesk.with({ answers: [] });
  const path = join(desk.repository, 'planted.txt');
  const script = planned({ one: { answers: [calls('shell', { command: `echo gotcha > ${path}` }), submits('one')] } });
  const other = await RunDesk.with(script);
  const args = ['run', 'do it', '--yes', '--sandbox', 'off'];
  const { code, end } = await desk.run(args, { env: { ANTHROPIC_BASE_URL: other.server.url } });
  expect([code, end.failure]).toEqual([
    8,
    { kind: 'checkout.changed', paths: [expect.stringContaining('planted.txt')] },
  ]);
});

test('--result writes run_end to a file', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const { end } = await desk.run(['run', 'make files', '--result', '../result.json']);
  const result: unknown = JSON.parse(await readFile(join(desk.folder, 'result.json'), 'utf8'));
  expect(result).toMatchObject({ run: end.run, exitCode: 0, tasks: end.tasks, usage: end.usage });
});

test('--allow-partial exits 0 with failed tasks, and still names them', async () => {
  const desk = await RunDesk.with(planned({ ...TWO, bad: { answers: [{ stop: 'refusal', text: 'no' }] } }));
  const { code, end } = await desk.run(['run', 'make files', '--allow-partial']);
  expect([code, end.outcome, statuses(end)['bad']]).toEqual([0, 'incomplete', 'failed']);
});

test('--fail-fast stops at the first failure', async () => {
  const desk = await RunDesk.with(planned({ bad: { answers: [{ stop: 'refusal', text: 'no' }] }, ...TWO }));
  const { code, end } = await desk.run(['run', 'make files', '--fail-fast']);
  expect([code, statuses(end)]).toEqual([3, { bad: 'failed', one: 'skipped', two: 'skipped' }]);
});
