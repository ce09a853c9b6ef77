// The views of a run: how one is chosen, and that all agree.

import { PassThrough } from 'node:stream';
import type { Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import type { Output } from '../../../bin/io.ts';
import { openRunView } from '../../../bin/views/view-choice.ts';
import { looksOf } from '../../../bin/views/text/style.ts';
import { sampleRun } from '../../support/run/sample-run.ts';
import { FakeIo } from '../fake-io.ts';
import { FakeTerminal } from './terminal.ts';

type View = 'dashboard' | 'lines' | 'json' | 'silent';
type Given = { readonly view?: View; readonly json?: boolean; readonly env?: Record<string, string> };
type Shown = { readonly text: string; readonly stderr: string };

const WIDE = { columns: 200, rows: 200 };

/** The output of a run, on a terminal or in a pipe. */
async function shown(events: readonly Recorded[], given: Given, terminal?: FakeTerminal): Promise<Shown> {
  const fake = new FakeIo({ cwd: '/', env: { NO_COLOR: '1', ...given.env } });
  let piped = '';
  const pipe: Output = new PassThrough().on('data', (chunk: Buffer) => (piped += chunk.toString()));
  const io = { ...fake.io, stdout: terminal?.output ?? pipe };
  const view = await openRunView({ view: given.view, json: given.json ?? false }, io);
  for (const event of events) await view.show(event);
  await view.close();
  const text = terminal === undefined ? piped : (await terminal.everything()).join('\n');
  return { text, stderr: fake.stderr };
}

const { events: EVENTS } = sampleRun({ tasks: 3 });

test.each<[string, Given, boolean, RegExp]>([
  ['a terminal has the dashboard', {}, true, /^\? task-2.*\ndrover {2}Replace/],
  ['a terminal has lines where they are wished for', { view: 'lines' }, true, /^\d\d:\d\d:\d\d {2}drover/],
  ['a terminal in CI has lines', { env: { CI: '1' } }, true, /^\d\d:\d\d:\d\d {2}drover/],
  [
    'a terminal in CI has the dashboard where it is wished for',
    { view: 'dashboard', env: { CI: '1' } },
    true,
    /\ndrover {2}Re/,
  ],
  ['a dumb terminal has lines', { env: { TERM: 'dumb' } }, true, /^\d\d:\d\d:\d\d {2}drover/],
  ['a pipe has lines', {}, false, /^\d\d:\d\d:\d\d {2}drover/],
  ['--view json has events', { view: 'json' }, false, /^\{"v":1,/],
  ['--json has events, on a terminal too', { json: true }, true, /^\{"v":1,/],
  ['--view silent has nothing', { view: 'silent' }, true, /^$/],
])('%s', async (_, given, isTerminal, looks) => {
  const { text, stderr } = await shown(EVENTS, given, isTerminal ? new FakeTerminal(WIDE) : undefined);
  expect(text).toMatch(looks);
  expect(stderr).toBe('');
});

test('a dashboard without a terminal falls back to lines, and says so', async () => {
  const { text, stderr } = await shown(EVENTS, { view: 'dashboard' });
  expect(text).toMatch(/^\d\d:\d\d:\d\d {2}drover/);
  expect(stderr).toBe('drover: the output is not a terminal, so lines are shown instead of the dashboard\n');
});

test('--json and another view exclude each other', async () => {
  await expect(shown(EVENTS, { view: 'dashboard', json: true })).rejects.toThrow('contradict');
});

const WORDS = new Map(Object.entries(looksOf).map(([state, { word }]) => [word, state]));

/** The last line about each task. */
function statuses(lines: readonly string[], said: RegExp): Record<string, string> {
  const found = lines.flatMap((line) => {
    const [, task = '', word = ''] = said.exec(line) ?? [];
    const status = WORDS.get(word);
    return status === undefined ? [] : [[task, status] as const];
  });
  return Object.fromEntries(found);
}

const ENDS = 'landed|done|failed|skipped|conflict|gate failed|cancelled';

test.each([3, 7, 10, 16])('all views of a run with %i tasks show the same ending', async (tasks) => {
  const { events, statuses: truth } = sampleRun({ tasks });
  const dashboard = await shown(events, {}, new FakeTerminal(WIDE));
  const lines = await shown(events, { view: 'lines' });
  const json = await shown(events, { view: 'json' });
  const end = JSON.parse(json.text.trim().split('\n').at(-1) ?? '') as Extract<Recorded, { type: 'run_end' }>;

  expect(statuses(dashboard.text.split('\n'), new RegExp(`^\\S (task-\\d+) +(${ENDS})`))).toEqual(truth);
  expect(statuses(lines.text.split('\n'), new RegExp(`^[\\d:]{8}  (task-\\d+) +\\S (${ENDS})`))).toEqual(truth);
  expect(Object.fromEntries(end.tasks.map(({ task, status }) => [task, status]))).toEqual(truth);
  for (const { text } of [dashboard, lines]) {
    const rest = statuses(text.split('\n'), new RegExp(`^  \\S (task-\\d+) +(${ENDS}): `));
    const landed = Object.keys(truth).filter((task) => truth[task] === 'landed');
    expect({ ...Object.fromEntries(landed.map((task) => [task, 'landed'])), ...rest }).toEqual(truth);
    expect(landed.filter((task) => !new RegExp(`^  ✓ ${task} `, 'm').test(text))).toEqual([]);
  }
});
