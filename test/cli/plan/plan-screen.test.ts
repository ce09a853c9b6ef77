// The plan screen on a terminal: what it shows, and which keys answer it.

import { once } from 'node:events';
import type { PlannedTask } from '@drover/protocol/plan';
import { expect, test } from 'vitest';
import type { Io } from '../../../bin/io.ts';
import type { Estimate } from '../../../bin/run/plan/estimate.ts';
import { askPlan, type PlanKey } from '../../../bin/run/plan/plan-screen.ts';
import { FakeTerminal, type Size } from '../views/terminal.ts';

const task = (id: string, more: Partial<PlannedTask> = {}): PlannedTask => ({
  id,
  title: `Do ${id}`,
  prompt: `Please do ${id}.\nAnd do it well.`,
  dependsOn: [],
  files: [`src/${id}.ts`],
  mode: 'write',
  ...more,
});
const TASKS = [task('api'), task('ui', { dependsOn: ['api'] }), task('look', { mode: 'read', files: [] })];
const SETTINGS = { workers: 4, gates: ['pnpm test'], cap: { usd: 5 } };
const ESTIMATE: Estimate = { ms: 90_000, cost: 0.42, tasks: 12, runs: 2, isHere: true };
const WIDE: Size = { columns: 80, rows: 24 };

type Asking = {
  readonly terminal: FakeTerminal;
  readonly answer: Promise<PlanKey | undefined>;
  readonly stop: AbortController;
};

async function asked(tasks: readonly PlannedTask[], size = WIDE, typedAhead = ''): Promise<Asking> {
  const terminal = new FakeTerminal(size);
  const stop = new AbortController();
  const { stdin, job } = terminal.io({});
  if (typedAhead !== '') terminal.keys.write(typedAhead);
  const io = { stdin, stderr: terminal.output, stdout: terminal.output, env: { NO_COLOR: '1' }, ...(job && { job }) };
  const facts = { tasks, settings: SETTINGS, estimate: ESTIMATE, mayComment: true };
  const answer = askPlan(facts, io as unknown as Io, stop.signal);
  await terminal.until((text) => text.includes('[y] run'));
  return { terminal, answer, stop };
}

async function press({ terminal }: Asking, ...keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const read = once(terminal.keys, 'data');
    terminal.keys.write(key);
    await read;
  }
}

test('the plan screen shows every task, the totals and the keys', async () => {
  const asking = await asked(TASKS);
  expect(await asking.terminal.screen()).toEqual([
    'Plan: 3 tasks · 4 workers · budget $5.00',
    'Gates: pnpm test',
    'Estimate: about $0.4200 and 1 m 30 s (this model: 12 tasks in 2 runs here)',
    '',
    '› api   Do api',
    '    writes · files src/api.ts · waits for nothing',
    '    Please do api.',
    '  ui    Do ui',
    '    writes · files src/ui.ts · waits for api',
    '    Please do ui.',
    '  look  Do look',
    '    reads only · files not named · waits for nothing',
    '    Please do look.',
    '',
    '[y] run  [n/q] stop  [enter] expand  [e] edit  [c] comment  [↑↓/jk/page] move',
  ]);
  asking.stop.abort();
  expect(await asking.answer).toBeUndefined();
});

test.each([
  ['y', 'run'],
  ['n', 'stop'],
  ['q', 'stop'],
  ['e', 'edit'],
  ['c', 'comment'],
])('the key %s answers the plan screen with %s, and leaves the terminal as it was', async (key, answer) => {
  const asking = await asked(TASKS);
  expect(asking.terminal.isRaw).toBe(true);
  await press(asking, key);
  expect(await asking.answer).toBe(answer);
  expect([asking.terminal.keys.isPaused(), await asking.terminal.screen()]).toEqual([true, []]);
  expect([asking.terminal.isRaw, asking.terminal.isCursorVisible]).toEqual([false, true]);
});

test('every letter that the plan screen takes is listed on it', async () => {
  const taken: string[] = [];
  let listed = '';
  for (const letter of 'abcdefghijklmnopqrstuvwxyz') {
    const asking = await asked(TASKS);
    await press(asking, '\u001B[B');
    const before = await asking.terminal.screen();
    await press(asking, letter);
    const isMoved = (await asking.terminal.screen()).join('\n') !== before.join('\n');
    asking.stop.abort();
    if ((await asking.answer) !== undefined || isMoved) taken.push(letter);
    listed = before.join('\n').slice(before.join('\n').indexOf('[y]'));
  }
  const letters = [...listed.matchAll(/\[([^\]]+)\]/g)].flatMap(([, keys]) => (keys ?? '').split('/'));
  const single = letters.filter((keys) => !['enter', 'page', '↑↓'].includes(keys)).join('');
  expect(taken.join('')).toBe(single.split('').toSorted().join(''));
});

test('lines as wide as the terminal end with a sign where they are cut', async () => {
  const asking = await asked([task('api', { title: 'A long title '.repeat(10), prompt: 'word '.repeat(40) })]);
  await press(asking, '\u001B[B');
  const full = (await asking.terminal.screen()).filter((line) => line.length === WIDE.columns);
  expect(full.map((line) => line.at(-1))).toEqual(['…', '…']);
  asking.stop.abort();
});

test('Enter expands the chosen task to its whole prompt, and folds it again', async () => {
  const asking = await asked(TASKS);
  await press(asking, '\u001B[B', '\r');
  await asking.terminal.until((text) => text.includes('And do it well.'));
  const screen = await asking.terminal.screen();
  expect(screen.slice(7, 11)).toEqual([
    '› ui    Do ui',
    '    writes · files src/ui.ts · waits for api',
    '    Please do ui.',
    '    And do it well.',
  ]);
  expect(screen.join('\n')).toContain('[enter] fold');
  await press(asking, '\r');
  expect((await asking.terminal.screen()).join('\n')).not.toContain('And do it well.');
  asking.stop.abort();
});

test('keys typed before the plan screen appears, and pasted keys, never answer it', async () => {
  const asking = await asked(TASKS, WIDE, 'y');
  await press(asking, 'yes\r', 'nn', 'x', '\u001B[Z');
  let isAnswered = false;
  void asking.answer.then(() => (isAnswered = true));
  await press(asking, 'j');
  await asking.terminal.until((text) => text.includes('› ui'));
  expect(isAnswered).toBe(false);
  await press(asking, 'y');
  expect(await asking.answer).toBe('run');
});

test.each([WIDE, { columns: 120, rows: 40 }, { columns: 40, rows: 12 }])(
  'a long plan scrolls and stays within $columns × $rows',
  async (size) => {
    const many = Array.from({ length: 60 }, (_, at) => task(`task-${at + 1}`, { title: 'A title '.repeat(20) }));
    const asking = await asked(many, size);
    const first = await asking.terminal.screen();
    expect(first.length).toBeLessThan(size.rows);
    expect(first.join('\n')).toContain('› task-1 ');
    for (let n = 0; n < 59; n++) await press(asking, 'j');
    await asking.terminal.until((text) => text.includes('› task-60'));
    const last = await asking.terminal.screen();
    expect(last).toHaveLength(first.length);
    expect(last.find((line) => line.startsWith('lines '))).toMatch(/^lines \d+ to 180 of 180$/);
    expect((await asking.terminal.everything()).length).toBeLessThan(size.rows);
    asking.stop.abort();
  },
);

test('a prompt longer than the screen can be read to its end', async () => {
  const lines = Array.from({ length: 50 }, (_, at) => `line ${at + 1}`);
  const asking = await asked([task('long', { prompt: lines.join('\n') }), task('next')]);
  await press(asking, '\r');
  for (let n = 0; n < 40; n++) await press(asking, 'j');
  await asking.terminal.until((text) => text.includes('line 50'));
  asking.stop.abort();
});

test('a resized terminal shows the plan screen anew', async () => {
  const asking = await asked(TASKS);
  asking.terminal.resize({ columns: 50, rows: 24 });
  await asking.terminal.until((text) => text.includes('\n[c] comment  [↑↓/jk/page] move'));
  expect((await asking.terminal.screen()).filter((line) => line.includes('› api'))).toHaveLength(1);
  asking.stop.abort();
});

test('Ctrl-C and Ctrl-Z send their signals, and the plan screen comes back', async () => {
  const asking = await asked(TASKS);
  await press(asking, '\u0003', '\u001A');
  expect(asking.terminal.signals).toEqual(['SIGINT raw', 'SIGTSTP normal']);
  for (const resumed of asking.terminal.resumed) resumed();
  await asking.terminal.until((text) => text.includes('› api'));
  expect(asking.terminal.isRaw).toBe(true);
  await press(asking, 'n');
  expect(await asking.answer).toBe('stop');
});

test('text of a plan sends no sequence to the terminal', async () => {
  const asking = await asked([task('evil', { title: 'a\u001B[2Jb\u0007', prompt: '\u001B]0;x\u0007c' })]);
  expect(asking.terminal.raw).not.toContain('\u001B[2J');
  expect(asking.terminal.raw).not.toContain('\u001B]0');
  expect((await asking.terminal.screen()).slice(4, 7)).toEqual([
    '› evil  ab',
    '    writes · files src/evil.ts · waits for nothing',
    '    c',
  ]);
  asking.stop.abort();
});
