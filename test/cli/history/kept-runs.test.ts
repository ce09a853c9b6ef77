// Stored runs: drover runs, show and logs, and how a run is named.

import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runJournalPath } from '@drover/coordinator/run/journal';
import type { Recorded } from '@drover/protocol/events';
import { Journal } from '@drover/core/journal/file/journal';
import type { JsonObject } from '@drover/protocol/json';
import { expect, test } from 'vitest';
import { main } from '../../../bin/drover.ts';
import { sampleRun } from '../../support/run/sample-run.ts';
import { steady } from '../desk.ts';
import { FakeIo } from '../fake-io.ts';
import { Shelf } from './shelf.ts';
import { until } from '../../support/until.ts';

const RUN = 'run_1a2b3c4d5e6f70819203a4b5c6d7e8f9';
const CUT = 'run_1a2b9999000000000000000000000000';
// So old that the list shows a date at any time.
const longAgo = (events: readonly Recorded[], run: string): readonly Recorded[] =>
  events.map((event) => ({ ...event, run, at: event.at.replace('2027', '2020') }) as Recorded);
const events = longAgo(sampleRun({ tasks: 6, cap: { usd: 5 } }).events, RUN);
const middle = events.findIndex(({ type }) => type === 'merge_end') + 1;

/** A finished run, a run killed half way, and an older session. */
async function shelfOfThree(): Promise<Shelf> {
  const shelf = await Shelf.empty();
  await shelf.keepRun(RUN, events);
  await shelf.keepRun(CUT, longAgo(events.slice(0, middle), CUT));
  await shelf.keepSession('nightly', 'look after the repository', '2020-01-14T09:00:00.000Z');
  return shelf;
}

test('runs and sessions are listed together, newest first, with landings and cost', async () => {
  const shelf = await shelfOfThree();
  const { code, stdout, stderr } = await shelf.drover(['runs'], { columns: 80 });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(`\n${stdout}`).toMatchInlineSnapshot(`
    "
      kind     id        when        state             work     cost  title
    ✗ run      1a2b3c4d  2020-01-15  incomplete   5/6 tasks  $0.1250  Replace momen…
    ◐ run      1a2b9999  2020-01-15  interrupted  1/6 tasks  $0.0500  Replace momen…
    ✗ session  nightly   2020-01-14  incomplete      1 turn           look after th…
    "
  `);
});

test('a narrow terminal gets the most important columns, and no line is too long', async () => {
  const shelf = await shelfOfThree();
  const narrow = (await shelf.drover(['runs'], { columns: 40 })).stdout;
  const middling = (await shelf.drover(['runs'], { columns: 60 })).stdout;
  expect(`\n${narrow}`).toMatchInlineSnapshot(`
    "
      id        when        title
    ✗ 1a2b3c4d  2020-01-15  Replace moment …
    ◐ 1a2b9999  2020-01-15  Replace moment …
    ✗ nightly   2020-01-14  look after the …
    "
  `);
  expect([narrow, middling].map((text) => Math.max(...text.split('\n').map((line) => line.length)))).toEqual([40, 60]);
});

test('the JSON list names each kind and whether it is resumable', async () => {
  const shelf = await shelfOfThree();
  const { stdout } = await shelf.drover(['runs', '--json']);
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as JsonObject);
  expect(rows.map(({ kind, id, state, canGoOn, live }) => [kind, id, state, canGoOn, live])).toEqual([
    ['run', RUN, 'incomplete', true, false],
    ['run', CUT, 'open', true, false],
    ['session', 'nightly', 'incomplete', undefined, false],
  ]);
  expect(rows[0]).toEqual({
    kind: 'run',
    id: RUN,
    startedAt: events[0]?.at,
    updatedAt: events.at(-1)?.at,
    model: 'rehearsal/any',
    cwd: '/sample',
    title: 'Replace moment with date-fns everywhere',
    tasks: 6,
    landed: 5,
    cost: 0.125,
    state: 'incomplete',
    canGoOn: true,
    awaitsApproval: false,
    live: false,
  });
});

test('the list is the same without its index, and drops removed entries', async () => {
  const shelf = await shelfOfThree();
  const before = (await shelf.drover(['runs', '--json'])).stdout;
  await rm(join(shelf.home, 'index.sqlite'));
  expect((await shelf.drover(['runs', '--json'])).stdout).toBe(before);
  await rm(join(shelf.home, 'runs', CUT), { recursive: true });
  expect((await shelf.drover(['runs', '--json'])).stdout.trimEnd().split('\n')).toHaveLength(2);
});

test('a finished run is shown as it was reported, with the possible next steps', async () => {
  const shelf = await shelfOfThree();
  const { code, stdout } = await shelf.drover(['show', '1a2b3c'], { columns: 80 });
  expect([code, stdout.split('\n').slice(0, 2)]).toEqual([
    0,
    ['Replace moment with date-fns everywhere', expect.stringMatching(/^✗ incomplete {2}5 of 6 tasks landed · /)],
  ]);
  expect(stdout.slice(stdout.indexOf('Next'))).toBe(
    'Next\n  drover diff 1a2b3c4d          look at the changes\n  git merge drover/1a2b/merged  take it over\n  drover retry 1a2b3c4d         try again what failed\n  drover logs 1a2b3c4d          see what happened\n  drover resume 1a2b3c4d        go on with what is not done\n',
  );
});

test('an unfinished run is shown with its state and how to resume it', async () => {
  const shelf = await shelfOfThree();
  const { code, stdout } = await shelf.drover(['show', CUT], { columns: 80 });
  expect(code).toBe(0);
  expect(`\n${steady(stdout)}`).toMatchInlineSnapshot(`
    "
    Replace moment with date-fns everywhere
      run     run_1a2b9999000000000000000000000000
      model   rehearsal/any
      folder  /sample
      begun   <date>, last heard of 2020-01-15; at work for <time>
      state   ◐ interrupted
      tasks   1 of 6 landed
      used    42,000 tokens in (36,000 from cache), 1,600 out
      cost    $0.0500

      ✓ task-1  landed   Replace moment in the API client
      → task-2  merging  Billing
      → task-3  merging  Format dates in the weekly report and in everything that i…
      · task-4  waiting  Calendar
      · task-5  waiting  Time zones of the scheduler
      · task-6  waiting  Replace moment in the API client

    resume with: drover resume 1a2b9999
    "
  `);
  const narrow = (await shelf.drover(['show', CUT], { columns: 40 })).stdout;
  expect(narrow.split('\n').filter((line) => line.length > 40 && !line.includes('_'))).toEqual([]);
  expect(narrow.trimEnd().split('\n').slice(-1)).toEqual(['resume with: drover resume 1a2b9999']);
});

test('show --json sums up a run in one object, finished or not', async () => {
  const shelf = await shelfOfThree();
  const shown = async (id: string) => JSON.parse((await shelf.drover(['show', id, '--json'])).stdout) as JsonObject;
  expect(await shown(RUN)).toMatchObject({
    kind: 'run',
    id: RUN,
    state: 'incomplete',
    canGoOn: true,
    settings: { goal: 'Replace moment with date-fns everywhere', workers: 3 },
    exitCode: 3,
    delivered: { deliver: 'branch' },
  });
  const cut = await shown(CUT);
  expect(cut).toMatchObject({ kind: 'run', id: CUT, state: 'open', canGoOn: true });
  expect([cut['exitCode'], (cut['tasks'] as JsonObject[]).map(({ task, doing }) => [task, doing])]).toEqual([
    undefined,
    [
      ['task-1', undefined],
      ['task-2', 'merging'],
      ['task-3', 'merging'],
      ['task-4', 'waiting'],
      ['task-5', 'waiting'],
      ['task-6', 'waiting'],
    ],
  ]);
});

test('a task of a killed run is shown as interrupted, with how to resume', async () => {
  const shelf = await Shelf.empty();
  const begun = events.findIndex(({ type }) => type === 'task_start');
  const { task = '' } = events[begun] ?? {};
  await shelf.keepRun(CUT, longAgo(events.slice(0, begun + 2), CUT));
  const { stdout } = await shelf.drover(['show', CUT, task], { columns: 80 });
  expect(stdout).toContain('\n  state   ◐ interrupted\n');
  expect(stdout).toContain('\nresume with: drover resume 1a2b9999\n');
  const json = JSON.parse((await shelf.drover(['show', CUT, task, '--json'])).stdout) as JsonObject;
  expect(json['state']).toBe('interrupted');
});

test('show of one task prints its status, its assignment and why it did not land', async () => {
  const shelf = await shelfOfThree();
  const { stdout } = await shelf.drover(['show', RUN, 'task-4'], { columns: 60 });
  expect(`\n${steady(stdout)}`).toMatchInlineSnapshot(`
    "
    Calendar
      task    task-4
      state   ✗ failed: the worker was lost: out of memory
      tries   2, <time>
      used    <tokens>
      cost    $0.0250
      asked   Do it.

    see its events with: drover logs 1a2b3c4d task-4
    "
  `);
  expect(JSON.parse((await shelf.drover(['show', RUN, 'task-4', '--json'])).stdout)).toMatchObject({
    kind: 'task',
    run: RUN,
    state: 'failed',
    row: { task: 'task-4', attempts: 2 },
  });
});

test('logs prints one line per record of a run, with worker and task', async () => {
  const shelf = await shelfOfThree();
  const { stdout } = await shelf.drover(['logs', RUN], { columns: 80 });
  const lines = steady(stdout).trimEnd().split('\n');
  expect(lines).toHaveLength(events.length);
  const of = (text: string): string | undefined => lines.find((line) => line.includes(text));
  expect([of('run_start'), of('plan_ready'), of('grep: moment'), of('task_start'), of('task-4/2')])
    .toMatchInlineSnapshot(`
    [
      "<clock>  run                run_start                begins: Replace momen…",
      "<clock>  coordinator  1.1   plan_ready               plan 1: task-1, task-…",
      "<clock>  coordinator  1.1   tool_execution_start     grep: moment",
      "<clock>  1 task-1     1.1   task_start               from base0000 in /ws/1",
      "<clock>  1 task-4/2   1.1   task_start               from base0000 in /ws/1",
    ]
  `);
  const narrow = (await shelf.drover(['logs', RUN], { columns: 40 })).stdout.trimEnd().split('\n');
  expect(Math.max(...narrow.map((line) => line.length))).toBe(40);
});

test('logs leave out milliseconds, steps and alignment below 72 columns', async () => {
  const shelf = await shelfOfThree();
  const lineAt = async (columns: number): Promise<string | undefined> => {
    const lines = (await shelf.drover(['logs', RUN], { columns })).stdout.split('\n');
    return lines.find((line) => line.includes('grep: moment'));
  };
  expect(await lineAt(72)).toMatch(/^\S+\.\d{3}  coordinator  1\.1   tool_execution_start     grep: moment$/);
  expect(await lineAt(71)).toMatch(/^\d\d:\d\d:\d\d coordinat… tool_execution_start  grep: moment$/);
});

test('logs of one task hold its records and its gates; the coordinator has its own', async () => {
  const shelf = await shelfOfThree();
  const told = async (...argv: readonly string[]) =>
    (await shelf.drover(['logs', RUN, ...argv, '--json'])).stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as JsonObject);
  const ofTask = await told('task-1');
  expect(ofTask).toEqual(
    events.filter((event) => event.task === 'task-1' || ('command' in event && event.tasks.includes('task-1'))),
  );
  expect(new Set(ofTask.map(({ type }) => type))).toContain('gate_end');
  expect(await told('coordinator')).toEqual(events.filter(({ worker, task }) => worker === 0 && task === undefined));
});

test('an unknown task, or a task of a session, is an error with the fix', async () => {
  const shelf = await shelfOfThree();
  const said = async (...argv: readonly string[]) => {
    const { code, stderr } = await shelf.drover(argv);
    return [code, stderr];
  };
  expect(await said('show', RUN, 'tsak-1')).toEqual([
    2,
    "drover: the run has no task 'tsak-1'; did you mean task-1?\n",
  ]);
  expect(await said('logs', RUN, 'billing')).toEqual([
    2,
    "drover: the run has no task 'billing'; there are task-1, task-2, task-3, task-4, task-5, task-6\n",
  ]);
  expect(await said('logs', 'nightly', 'x')).toEqual([2, 'drover: session nightly has no tasks; a run has\n']);
  expect(await said('logs', RUN, 'task-1', 'x')).toEqual([
    2,
    'drover: drover logs takes one id and one task; see drover logs --help\n',
  ]);
});

test('logs --follow prints new records and ends with the run', async () => {
  const shelf = await Shelf.empty();
  await shelf.keepRun(RUN, events.slice(0, 3));
  const path = runJournalPath(shelf.home, RUN);
  const silent = { onTrouble: () => undefined, onRecovery: () => undefined };
  const { journal } = await Journal.open({ path, run: RUN, ...silent });
  const fake = new FakeIo({ cwd: shelf.cwd });
  const following = main(['logs', RUN, '--follow', '--json'], fake.io);
  await until(() => fake.stdout.includes('message_start'));
  await journal.append(events.slice(3) as unknown as readonly JsonObject[], true);
  // The process that writes the journal is still alive.
  expect(await following).toBe(0);
  await journal.close();
  expect(
    fake.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual(events);
});

test('a part of an id finds a run or a session', async () => {
  const shelf = await shelfOfThree();
  const made = `ses_${'1a2b3fff'.padEnd(32, '0')}`;
  await shelf.keepSession(made, 'say hello', '2020-01-13T09:00:00.000Z');
  const meant = async (typed: string): Promise<unknown> => {
    const { code, stdout, stderr } = await shelf.drover(['show', typed, '--json']);
    return code === 0 ? (JSON.parse(stdout) as JsonObject)['id'] : [code, stderr];
  };
  expect(await meant('1a2b3c')).toBe(RUN);
  expect(await meant('run_1a2b9')).toBe(CUT);
  expect(await meant('1a2b3f')).toBe(made);
  expect(await meant('night')).toBe('nightly');
  expect(await meant('ses_')).toBe(made);
  const goal = '(Replace moment with date-fns everywhere)';
  expect(await meant('1a2b3')).toEqual([
    2,
    `drover: '1a2b3' may be any of 1a2b3c4d ${goal}, 1a2b3fff (say hello); type more of it\n`,
  ]);
  expect(await meant('1a2b3d4d')).toEqual([
    2,
    `drover: there is no run or session '1a2b3d4d'; the nearest is 1a2b3c4d ${goal}; drover runs lists them\n`,
  ]);
});

test('shell completion offers runs, sessions and the tasks of the typed run', async () => {
  const shelf = await shelfOfThree();
  const offered = async (...words: readonly string[]) =>
    (await shelf.drover(['--get-yargs-completions', 'drover', ...words])).stdout
      .trim()
      .split('\n')
      .filter((word) => !word.startsWith('-'));
  expect(await offered('show', '')).toEqual(['1a2b3c4d', '1a2b9999', 'nightly']);
  expect(await offered('logs', '1a2b3c', 'task-')).toEqual([
    'task-1',
    'task-2',
    'task-3',
    'task-4',
    'task-5',
    'task-6',
  ]);
  expect(await offered('logs', 'nightly', '')).toEqual([]);
});

test('a damaged run is shown as far as it is readable, and marked as damaged', async () => {
  const shelf = await shelfOfThree();
  const path = runJournalPath(shelf.home, RUN);
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replace('"type":"run_end"', '"type":"run_and"'));
  const problem = `drover: ${path} is damaged`.replace(shelf.cwd, '<cwd>');
  for (const argv of [
    ['show', RUN],
    ['logs', RUN],
    ['replay', RUN],
    ['resume', RUN],
  ]) {
    const { code, stderr } = await shelf.drover(argv);
    expect([argv[0], code, stderr.startsWith(problem.slice(0, 60))]).toEqual([argv[0], 2, true]);
  }
  const [row] = (await shelf.drover(['runs', '--json'])).stdout.split('\n');
  expect(JSON.parse(row ?? '')).toMatchObject({ id: RUN, state: 'damaged', canGoOn: false });
});
