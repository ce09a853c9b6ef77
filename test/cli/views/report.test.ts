// The report at the end of a run.

import { RunState } from '@drover/coordinator/view/state';
import type { Event, Recorded } from '@drover/protocol/events';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import type { TaskRow } from '@drover/protocol/run';
import { expect, test } from 'vitest';
import { runReport, shortRunId } from '../../../bin/views/report.ts';
import { type Style, textStyle } from '../../../bin/views/text/style.ts';
import { widthOfText } from '../../../bin/views/text/terminal-text.ts';
import { label, sampleRun, sampleSettings, Teller } from '../../support/run/sample-run.ts';

type Start = Extract<Event, { readonly type: 'run_start' }>;
type End = Extract<Event, { readonly type: 'run_end' }>;

function reported(events: readonly Recorded[], columns = 80, style: Style = (_, text) => text): string {
  const state = new RunState();
  for (const event of events) state.take(event);
  return runReport(state, { columns, style });
}

/** A run without tasks and with this ending. */
function ended(end: Partial<End>, start: Partial<Start> = {}): string {
  const teller = new Teller();
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings, ...start });
  teller.tell({ type: 'run_end', outcome: 'done', exitCode: 0, tasks: [], usage: NO_USAGE, ...end }, {}, 2_000);
  return `\n${reported(teller.events)}`;
}

test('the report of a partial failure lists landings, failures, cost and next step', () => {
  expect(`\n${reported(sampleRun({ tasks: 10 }).events)}`).toMatchInlineSnapshot(`
    "
    Replace moment with date-fns everywhere
    ✗ incomplete  6 of 10 tasks landed · 21.9 s · $0.1750

    Landed (6)
      ✓ task-1  Replace moment in the API client                   2 files · $0.0125
      ✓ task-2  Billing                                            2 files · $0.0125
      ✓ task-3  Format dates in the weekly report and in everyth…  2 files · $0.0125
      ✓ task-5  Time zones of the scheduler           2 files · 2 attempts · $0.0250
      ✓ task-6  Replace moment in the API client      2 files · 2 attempts · $0.0250
      ✓ task-8  done: Format dates in the weekly report and in everything …  $0.0125

    Not landed (4)
      ✗ task-4   failed: Calendar                               2 attempts · $0.0250
          the worker was lost: out of memory
      ✗ task-7   gate failed: Billing                              2 files · $0.0125
          pnpm test fails with it
          the end of pnpm test:
          | 1 test fails:
          |   expected 2 to be 3
          |   at src/report.test.ts:12
          its work is kept on drover/1a2b/task-7
      ≠ task-9   conflict: Calendar                   2 files · 2 attempts · $0.0250
          it conflicts in package.json
          its work is kept on drover/1a2b/task-9
      - task-10  skipped: Time zones of the scheduler
          task task-4 failed

    Files changed (6)
      package.json
      src/task-1.ts
      src/task-2.ts
      src/task-3.ts
      src/task-5.ts
      src/task-6.ts

    Tested: what landed passes pnpm test

    Tokens
      coordinator        10.5k in  85 % cached   400 out  $0.0125
      task-1 (worker 1)  10.5k in  85 % cached   400 out  $0.0125
      task-2 (worker 2)  10.5k in  85 % cached   400 out  $0.0125
      task-3 (worker 3)  10.5k in  85 % cached   400 out  $0.0125
      task-4 (worker 1)    21k in  85 % cached   800 out  $0.0250
      task-5 (worker 2)    21k in  85 % cached   800 out  $0.0250
      task-6 (worker 3)    21k in  85 % cached   800 out  $0.0250
      task-7 (worker 1)  10.5k in  85 % cached   400 out  $0.0125
      task-8 (worker 2)  10.5k in  85 % cached   400 out  $0.0125
      task-9 (worker 3)    21k in  85 % cached   800 out  $0.0250
      together            147k in  85 % cached  5.6k out  $0.1750

    In the words of the coordinator
      moment is gone, but for what is listed.

    What landed is on branch drover/1a2b/merged (abc1234d).

    Next
      drover diff 1a2b3c4d          look at the changes
      git merge drover/1a2b/merged  take it over
      drover retry 1a2b3c4d         try again what failed
      drover show 1a2b3c4d          look at it again
      drover resume 1a2b3c4d        go on with what is not done
    "
  `);
});

test('a run in which every task landed offers nothing to resume', () => {
  const text = reported(sampleRun({ tasks: 3 }).events);
  expect(text).toContain('✓ done  3 of 3 tasks landed');
  expect(text).not.toMatch(/Not landed|drover resume/);
});

test('a run with nothing to do says so in one sentence', () => {
  expect(ended({ answer: 'moment is not used anywhere.' })).toMatchInlineSnapshot(`
    "
    Replace moment with date-fns everywhere
    ✓ done  there was nothing to do · 2.0 s

    moment is not used anywhere.

    Next
      drover show 1a2b3c4d  look at it again
    "
  `);
});

test('a stopped run says why, and how to resume it', () => {
  expect(ended({ outcome: 'cancelled', exitCode: 130, reason: 'interrupted' })).toMatchInlineSnapshot(`
    "
    Replace moment with date-fns everywhere
    ✗ cancelled  no task was begun · 2.0 s
      interrupted

    Next
      drover show 1a2b3c4d    look at it again
      drover resume 1a2b3c4d  go on with what is not done
    "
  `);
});

test('the cause that ended the run is not repeated for each task', () => {
  const row = {
    title: 'Do it',
    status: 'cancelled',
    attempts: 1,
    files: [],
    usage: NO_USAGE,
    cost: 0,
    waits: 0,
  } as const;
  const tasks = [
    { ...row, task: 'a', reason: 'interrupted' },
    { ...row, task: 'b', reason: 'it was not begun' },
  ];
  expect(ended({ outcome: 'cancelled', exitCode: 130, reason: 'interrupted', tasks })).toContain(
    '  interrupted\n\nNot landed (2)\n  - a  cancelled: Do it\n  - b  cancelled: Do it\n      it was not begun\n',
  );
});

test('a cause shared by several tasks is printed once, with the end of its output', () => {
  const printed = Array.from({ length: 20 }, (_, at) => `line ${at}`).join('\n');
  const reason = `the gate 'make' fails on 1a2b already, without this task:\n${printed}`;
  const row = {
    title: 'Do it',
    status: 'gate_failed',
    attempts: 1,
    files: [],
    usage: NO_USAGE,
    cost: 0,
    waits: 0,
  } as const;
  const tasks = ['a', 'b'].map((task) => ({ ...row, task, reason, branch: `drover/1/${task}` }));
  const text = ended({
    outcome: 'incomplete',
    exitCode: 4,
    tasks,
    delivered: { deliver: 'patch', commit: 'c', patches: [] },
  });
  const last = Array.from({ length: 12 }, (_, at) => `      | line ${at + 8}\n`).join('');
  expect(text).toContain(
    `Not landed (2)\n  ✗ a  gate failed: Do it\n  ✗ b  gate failed: Do it\n      the gate 'make' fails on 1a2b already, without this task:\n${last}      their work is kept on 2 branches like drover/1/a\n\nNothing has landed, so there is no patch.\n`,
  );
});

test.each<[string, TaskRow['status'], NonNullable<End['delivered']>, string]>([
  [
    'no branch',
    'gate_failed',
    { deliver: 'branch', commit: 'c' },
    'Nothing has landed, so there is no branch to take over.\n\nNext\n',
  ],
  [
    'no merge',
    'gate_failed',
    { deliver: 'merge', commit: 'c', branch: 'main' },
    'Nothing has landed, so there is nothing to merge into main.\n\nNext\n',
  ],
  ['a question was answered', 'done', { deliver: 'branch', commit: 'c' }, '\n\nNext\n'],
])('a run without landings points to no result: %s', (_, status, delivered, words) => {
  const row = { task: 'a', title: 'Do it', attempts: 1, files: [], usage: NO_USAGE, waits: 0 };
  const text = ended({ outcome: 'incomplete', exitCode: 4, tasks: [{ ...row, status }], delivered });
  expect(text).toContain(words);
  expect(text).not.toMatch(/landed is/);
});

test('a run with many tasks prints only the sum of their tokens', () => {
  const tokens = (tasks: number) =>
    /\nTokens\n([^]*?)\n\n/.exec(reported(sampleRun({ tasks }).events))?.[1]?.split('\n') ?? [];
  expect(tokens(20).length).toBeGreaterThan(15);
  expect(tokens(40).map((line) => line.trim().split(' ')[0])).toEqual(['coordinator', 'together']);
});

test('the report says that nothing was tested only if work landed without a gate', () => {
  const row = (status: TaskRow['status']): TaskRow => ({
    task: 'one',
    title: 'One',
    status,
    attempts: 1,
    files: ['a.ts'],
    usage: NO_USAGE,
    waits: 0,
  });
  const said = (status: TaskRow['status'], gates: readonly string[]) =>
    ended({ tasks: [row(status)] }, { gates }).includes('Not tested: no gate was given.');
  expect([said('landed', []), said('landed', ['npm test']), said('failed', [])]).toEqual([true, false, false]);
});

test('the report says that cut-off requests count with the most they can have cost', () => {
  const usage = { input: 10, output: 32_000, cacheRead: 0, cacheWrite: 0 };
  const said = (estimated: boolean) =>
    ended({ usage: { ...usage, ...(estimated && { estimated: true as const }) } }).includes(
      'Partly estimated: a request',
    );
  expect([said(true), said(false)]).toEqual([true, false]);
});

test('the report lists files of the checkout that were not included', () => {
  const notIncluded = Array.from({ length: 23 }, (_, at) => `src/draft-${String(at).padStart(2, '0')}.ts`);
  const text = ended({}, { notIncluded });
  expect(text).toContain('Not included: your uncommitted changes (23)\n  src/draft-00.ts\n');
  expect(text).toContain('  src/draft-19.ts\n  … and 3 more\n');
});

test.each<[string, NonNullable<End['delivered']>, string]>([
  [
    'a branch',
    { deliver: 'branch', commit: 'abcdef0123', branch: 'drover/1/merged' },
    'What landed is on branch drover/1/merged (abcdef01).',
  ],
  [
    'a merge',
    { deliver: 'merge', commit: 'abcdef0123', branch: 'main' },
    'What landed is merged into main (abcdef01).',
  ],
  [
    'patches',
    { deliver: 'patch', commit: 'abcdef0123', patches: ['/out/1.patch', '/out/all.patch'] },
    'What landed is in a patch, and all of it in all.patch:\n  /out/1.patch\n  /out/all.patch',
  ],
  [
    'a patch for each of three tasks',
    { deliver: 'patch', commit: 'abcdef0123', patches: ['1', '2', '3', 'all'].map((n) => `/out/${n}.patch`) },
    'What landed is in 3 patches, one a task, and all of it in all.patch:\n  /out/1.patch\n',
  ],
  [
    'many patches',
    { deliver: 'patch', commit: 'abcdef0123', patches: [1, 2, 3, 4, 5, 6].map((n) => `/out/${n}.patch`) },
    'What landed is in 6.patch, and as 5 patches of a task each beside it, in /out.\n',
  ],
  [
    'something else than was asked for',
    { deliver: 'branch', commit: 'abcdef0123', branch: 'b', instead: 'main has moved meanwhile.' },
    'main has moved meanwhile.\nWhat landed is on branch b (abcdef01).',
  ],
])('the report says where the result is: %s', (_, delivered, words) => {
  expect(ended({ delivered })).toContain(words);
});

test('a command to type is never cut, however narrow the terminal is', () => {
  const next = `git merge drover/${'x'.repeat(80)}/merged`;
  expect(ended({ delivered: { deliver: 'branch', commit: 'a', branch: 'b', next } })).toContain(`  ${next}\n`);
});

test.each([40, 80, 120])('at %i columns every line fits, with and without colours', (columns) => {
  const { events } = sampleRun({ tasks: 20, spice: ' 日本語 with a few words more' });
  const coloured = textStyle(Object.assign(process.stdout), { FORCE_COLOR: '1' });
  const plain = reported(events, columns);
  expect(plain.split('\n').filter((line) => widthOfText(line) > columns)).toEqual([]);
  // eslint-disable-next-line no-control-regex
  expect(reported(events, columns, coloured).replace(/\u001B\[\d+m/g, '')).toBe(plain);
});

test('the report holds no control sequence of a model, a tool or a file name', () => {
  const { events } = sampleRun({ tasks: 10, spice: '\u001B[2J\u009B31m\u001B]52;c;aGk=\u0007\r\u0008\u202E' });
  // eslint-disable-next-line no-control-regex
  expect(reported(events)).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202A-\u202E]/);
});

test('a failing gate is shown with its last lines', () => {
  const { events } = sampleRun({ tasks: 7 });
  const output = Array.from({ length: 40 }, (_, at) => `line ${at}`).join('\n');
  const text = reported(
    events.map((event) => (event.type === 'gate_end' && !event.passed ? { ...event, output } : event)),
  );
  expect(text).toContain('      | line 28\n');
  expect(text).toContain('      | line 39\n');
  expect(text).not.toContain('| line 27');
});

test('an unfinished run has no report', () => {
  expect(reported(sampleRun({ tasks: 3 }).events.slice(0, -1))).toBe('');
});

test('a run is named by a short unique prefix of its id', () => {
  expect(shortRunId('run_1a2b3c4d5e6f70819203a4b5c6d7e8f9')).toBe('1a2b3c4d');
  expect(shortRunId('nightly')).toBe('nightly');
});

test('the report lists denied calls with their task and count', () => {
  const teller = new Teller();
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings });
  const output = 'Not allowed: denied by the rule shell(curl*)';
  const end = { type: 'tool_execution_end', output, outputSummary: output, isError: true } as const;
  for (const worker of [1, 1, 2])
    teller.tell({ ...end, ...label(worker, 'shell: curl x') }, { worker, task: `task-${worker}` });
  // An allowed command that printed the same words is not a refusal.
  const ran = { ...label(3, 'shell: cat notes'), callId: 'ran' };
  teller.tell({ type: 'tool_execution_start', args: {}, ...ran }, { worker: 3 });
  teller.tell({ ...end, ...ran }, { worker: 3 });
  teller.tell({ type: 'run_end', outcome: 'done', exitCode: 0, tasks: [], usage: NO_USAGE }, {}, 2_000);
  expect(reported(teller.events)).toContain(
    [
      'Not allowed (3)',
      '  task-1: shell: curl x — denied by the rule shell(curl*) (2 times)',
      '  task-2: shell: curl x — denied by the rule shell(curl*)',
      '',
    ].join('\n'),
  );
});
