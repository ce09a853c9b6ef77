// The dashboard as a user sees it: events of runs go in, and the screen of a terminal is read.

import { setTimeout as sleep } from 'node:timers/promises';
import { RunState } from '@drover/coordinator/view/state';
import type { Event, Recorded } from '@drover/protocol/events';
import { expect, onTestFinished, test } from 'vitest';
import { frameOf } from '../../../bin/views/dashboard/frame.ts';
import { dashboardView } from '../../../bin/views/dashboard/dashboard.ts';
import type { RunView } from '../../../bin/views/view.ts';
import { sampleRun, sampleSettings, Teller } from '../../support/run/sample-run.ts';
import { FakeTerminal, type Size } from './terminal.ts';

const PAINTED_MS = 300; // paints are at most a quarter of a second apart
const PLAIN = { NO_COLOR: '1' };
const BEGIN_PAINT = '\u001B[?2026h';

type Playing = {
  readonly terminal: FakeTerminal;
  readonly view: RunView;
  readonly play: (to: number) => Promise<void>;
};

/** A dashboard that is fed a run's events; its clock is the run's. */
async function playing(events: readonly Recorded[], size: Size, env: Record<string, string> = PLAIN): Promise<Playing> {
  const terminal = new FakeTerminal(size);
  let told = 0;
  const view = dashboardView(terminal.io(env), () => Date.parse(events[Math.max(0, told - 1)]?.at ?? ''));
  onTestFinished(() => view.close());
  const play = async (to: number): Promise<void> => {
    for (const event of events.slice(told, to)) {
      told += 1;
      await view.show(event);
    }
  };
  return { terminal, view, play };
}

/** Feeds events up to the first that matches. */
function until(events: readonly Recorded[], isIt: (event: Recorded) => boolean): number {
  return events.findIndex(isIt) + 1;
}

const gateOf = (task: string) => (event: Recorded) => event.type === 'gate_start' && event.tasks.includes(task);

test('the dashboard shows landed, active and waiting tasks, and each last line', async () => {
  const { events } = sampleRun({ tasks: 10, cap: { usd: 5 } });
  const { terminal, play } = await playing(events, { columns: 80, rows: 24 });
  await play(until(events, gateOf('task-5')) - 40);
  await sleep(PAINTED_MS);
  expect(await terminal.screen()).toMatchInlineSnapshot(`
    [
      "? task-2: shell: pnpm test task-2 — no rule allows it",
      "",
      "drover  Replace moment with date-fns everywhere",
      "3 of 10 landed · $0.0500 of $5.00 · 11s · about 4s left · 43.6k tokens",
      "",
      "✓ task-1   landed       Replace moment in the API cli…   10.9k  $0.0125      4s",
      "✓ task-2   landed       Billing                          10.9k  $0.0125      4s",
      "✓ task-3   landed       Format dates in the weekly re…   10.9k  $0.0125      4s",
      "● task-4   thinking     Calendar                         10.9k  $0.0125      2s",
      "● task-5   thinking     Time zones of the scheduler                          2s",
      "● task-6   thinking     Replace moment in the API cli…                       2s",
      "· task-7   waiting      Billing",
      "· task-8   waiting      Format dates in the weekly re…",
      "· task-9   waiting      Calendar",
      "· task-10  waiting      for task-4",
      "",
      "› task-6: ok 2",
    ]
  `);
});

test('the dashboard shows the coordinator while there is no plan', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, play } = await playing(events, { columns: 80, rows: 24 });
  await play(until(events, ({ type }) => type === 'tool_execution_start'));
  await sleep(PAINTED_MS);
  expect(await terminal.screen()).toMatchInlineSnapshot(`
    [
      "",
      "drover  Replace moment with date-fns everywhere",
      "planning · 1s · 0 tokens",
      "",
      "▸ coordinator  running      grep: moment",
    ]
  `);
});

test('a small terminal gets fewer rows and columns, the most important ones', async () => {
  const { events } = sampleRun({ tasks: 20, cap: { tokens: 200_000 } });
  const { terminal, play } = await playing(events, { columns: 40, rows: 10 });
  await play(until(events, gateOf('task-7')) - 30);
  await sleep(PAINTED_MS);
  expect(await terminal.screen()).toMatchInlineSnapshot(`
    [
      "drover  Replace moment with date-fns e…",
      "5/20 landed, 1 failed · 16k/200k tokens",
      "✗ task-4   failed           5s",
      "▸ task-7   running          1s",
      "● task-8   thinking         1s",
      "● task-9   thinking         1s",
      "· task-10  waiting",
      "… and 15 more: 5 landed, 10 waiting",
      "› task-8: Looking at Format dates in t…",
    ]
  `);
});

test('a large terminal shows sixteen tasks and sums up the rest', async () => {
  const { events } = sampleRun({ tasks: 30 });
  const { terminal, play } = await playing(events, { columns: 200, rows: 50 });
  await play(until(events, gateOf('task-13')));
  await sleep(PAINTED_MS);
  const screen = await terminal.screen();
  expect(screen.filter((line) => /^[^?›] task-\d/.test(line))).toHaveLength(16);
  expect(screen.find((line) => line.startsWith('… and'))).toBe('… and 14 more: 7 landed, 1 done, 6 waiting');
});

const SPICES: readonly (readonly [string, string])[] = [
  ['plain words', ''],
  ['control sequences', '\u001B[2J\u001B[1;31mred\u001B]52;c;aGk=\u0007\u009B31m\u001B[999A\r\u0008\u001B[?25h'],
  ['newlines and tabs', '\n\none\r\ntwo\t\tthree\u2028four\u0085five'],
  ['text that runs to the left', ' \u202Eשלום עולם\u202C مرحبا\u2067'],
  ['wide letters', '日本語のタスクを実行する、とても長い名前'],
  ['piles of accents', 'e\u0301a\u0300\u0301\u0302\u0303\u0304\u0305\u0306 n\u0303'],
  ['joined emoji', ' 👨‍👩‍👧‍👦 🏳️‍🌈 ❤️ 👍🏽 1️⃣'],
];
const SIZES: readonly Size[] = [
  { columns: 80, rows: 24 },
  { columns: 200, rows: 50 },
  { columns: 40, rows: 10 },
];

const LOOKS = [PLAIN, { FORCE_COLOR: '1' }];
const EVERYWHERE = SIZES.flatMap((size) => LOOKS.map((env) => ({ size, env })));

test.each(SPICES)('with %s from outside, the screen is drawn correctly at every size', async (_, spice) => {
  const { events } = sampleRun({ tasks: 20, spice });
  const half = Math.floor(events.length / 2);
  const check = async ({ size, env }: (typeof EVERYWHERE)[number]): Promise<void> => {
    const { terminal, view, play } = await playing(events, size, env);
    await play(3);
    await play(half);
    await sleep(PAINTED_MS);
    const state = stateAfter(events.slice(0, half));
    const meant = frameOf(state, {
      columns: size.columns - 1,
      rows: size.rows,
      now: Date.parse(events[half - 1]?.at ?? ''),
      style: (_format, text) => text,
      ascii: false,
      loudest: loudestIn(state),
    });
    const screen = await terminal.screen();
    expect(screen.slice(-meant.length)).toEqual(meant);
    await play(events.length);
    await view.close();
    await terminal.screen();
    expect(terminal.isCursorVisible).toBe(true);
    expect(controlsIn(terminal.raw)).toEqual(env === PLAIN ? PAINTING : [...PAINTING, 'm']);
  };
  await Promise.all(EVERYWHERE.map(check));
});

function stateAfter(events: readonly Recorded[]): RunState {
  const state = new RunState();
  for (const event of events) state.take(event);
  return state;
}

function loudestIn(state: RunState): string | undefined {
  const open = [...state.tasks.values()].filter(({ isOpen, outputChars }) => isOpen && outputChars > 0);
  return open.toSorted((a, b) => b.outputChars - a.outputChars)[0]?.id;
}

/** The kinds of control sequences in a text. */
function controlsIn(raw: string): readonly string[] {
  // eslint-disable-next-line no-control-regex
  const kinds = raw.match(/\u001B\[[?0-9;]*[A-Za-z]|[\u0000-\u0009\u000B-\u001F\u007F-\u009F]/g) ?? [];
  const names = kinds.map((kind) => kind.replace('\u001B[', '').replace(/^[0-9;]+(?=[A-Za-z])/, ''));
  return [...new Set(names)].sort();
}

// Allowed: cursor left and up, erase, hide and show the cursor, synchronized update, no wrap.
const PAINTING: readonly string[] = ['\r', '?2026h', '?2026l', '?25h', '?25l', '?7h', '?7l', 'A', 'J', 'K'];

test('at the end each row keeps its last state, the report follows, the cursor is back', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, view, play } = await playing(events, { columns: 80, rows: 40 });
  await play(events.length);
  await view.close();
  expect(await terminal.everything()).toMatchInlineSnapshot(`
    [
      "? task-2: shell: pnpm test task-2 — no rule allows it",
      "",
      "drover  Replace moment with date-fns everywhere",
      "3 of 3 landed · $0.0500 · 8s · 43.6k tokens",
      "",
      "✓ task-1  landed       Replace moment in the API clie…   10.9k  $0.0125      4s",
      "✓ task-2  landed       Billing                           10.9k  $0.0125      4s",
      "✓ task-3  landed       Format dates in the weekly rep…   10.9k  $0.0125      4s",
      "",
      "Replace moment with date-fns everywhere",
      "✓ done  3 of 3 tasks landed · 8.6 s · $0.0500",
      "",
      "Landed (3)",
      "  ✓ task-1  Replace moment in the API client                   2 files · $0.0125",
      "  ✓ task-2  Billing                                            2 files · $0.0125",
      "  ✓ task-3  Format dates in the weekly report and in everyth…  2 files · $0.0125",
      "",
      "Files changed (4)",
      "  package.json",
      "  src/task-1.ts",
      "  src/task-2.ts",
      "  src/task-3.ts",
      "",
      "Tokens",
      "  coordinator        10.5k in  85 % cached   400 out  $0.0125",
      "  task-1 (worker 1)  10.5k in  85 % cached   400 out  $0.0125",
      "  task-2 (worker 2)  10.5k in  85 % cached   400 out  $0.0125",
      "  task-3 (worker 3)  10.5k in  85 % cached   400 out  $0.0125",
      "  together             42k in  85 % cached  1.6k out  $0.0500",
      "",
      "In the words of the coordinator",
      "  moment is gone, but for what is listed.",
      "",
      "What landed is on branch drover/1a2b/merged (abc1234d).",
      "",
      "Next",
      "  git merge drover/1a2b/merged  take it over",
      "  drover show 1a2b3c4d          look at it again",
    ]
  `);
  expect(terminal.isCursorVisible).toBe(true);
});

test('nothing is drawn during a question, and question and answer stay readable', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, view, play } = await playing(events, { columns: 60, rows: 20 });
  await play(until(events, ({ type }) => type === 'permission_request'));
  await view.whileAsking(async () => {
    terminal.output.write('  Allow shell: x? [y]es [n]o [a]lways: ');
    await play(until(events, ({ type }) => type === 'permission_decision') + 5);
    await sleep(PAINTED_MS);
    expect(await terminal.screen()).toEqual([
      '? task-2: shell: pnpm test task-2 — no rule allows it',
      '  Allow shell: x? [y]es [n]o [a]lways: ',
    ]);
    expect(terminal.isCursorVisible).toBe(true);
    terminal.output.write('y\n');
  });
  expect((await terminal.screen()).slice(0, 5)).toEqual([
    '? task-2: shell: pnpm test task-2 — no rule allows it',
    '  Allow shell: x? [y]es [n]o [a]lways: y',
    '',
    'drover  Replace moment with date-fns everywhere',
    '0 of 3 landed · $0.0250 · 6s · 21.8k tokens',
  ]);
  expect(terminal.isCursorVisible).toBe(false);
});

test('consecutive questions each appear in place, also if a task ends in between', async () => {
  const { events } = sampleRun({ tasks: 12 });
  const { terminal, view, play } = await playing(events, { columns: 60, rows: 30 });
  const isRequest = ({ type }: Recorded): boolean => type === 'permission_request';
  const first = until(events, isRequest);
  await play(first);
  await sleep(PAINTED_MS);
  const second = view.whileAsking(async () => {
    await view.whileAsking(async () => terminal.output.write('  Allow one? y\n'));
    await play(first + until(events.slice(first), isRequest));
    terminal.output.write('  Allow two? \n');
    await play(events.length);
  });
  await second;
  await view.close();
  const lines = await terminal.everything();
  expect(lines.slice(0, 7)).toEqual([
    '? task-2: shell: pnpm test task-2 — no rule allows it',
    '  Allow one? y',
    '? task-12: shell: pnpm test task-12 — no rule allows it',
    '  Allow two? ',
    '',
    'drover  Replace moment with date-fns everywhere',
    '8 of 12 landed, 3 failed · $0.2000 · 25s · 174.4k tokens',
  ]);
  expect(lines.filter((line) => line.startsWith('drover  '))).toHaveLength(1);
  expect(terminal.isCursorVisible).toBe(true);
});

test('nothing is drawn before the run begins', async () => {
  const { terminal } = await playing([], { columns: 60, rows: 20 });
  await sleep(PAINTED_MS);
  expect(await terminal.screen()).toEqual([]);
});

test('denied calls and warnings are printed above the dashboard', async () => {
  const teller = new Teller();
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings });
  teller.tell({ type: 'warning', message: 'the disk is nearly full, and this is a long sentence about it' });
  const { terminal, view, play } = await playing(teller.events, { columns: 40, rows: 12 });
  await play(2);
  await view.say('going on with run 1a2b');
  await sleep(PAINTED_MS);
  expect(await terminal.screen()).toEqual([
    '! the disk is nearly full, and this is a',
    '  long sentence about it',
    'going on with run 1a2b',
    'drover  Replace moment with date-fns e…',
    'planning · 0s · 0 tokens',
  ]);
});

test('a resized terminal shows one frame that fits', async () => {
  const { events } = sampleRun({ tasks: 8 });
  const { terminal, play } = await playing(events, { columns: 120, rows: 30 });
  await play(until(events, gateOf('task-5')));
  await sleep(PAINTED_MS);
  for (const columns of [70, 50, 100]) {
    terminal.resize({ columns, rows: 30 });
    await sleep(PAINTED_MS);
    const screen = await terminal.screen();
    expect(screen.filter((line) => line.startsWith('drover  '))).toHaveLength(1);
    expect(screen.filter((line) => /^[^?›] task-\d/.test(line))).toHaveLength(8);
    expect(screen.every((line) => line.length <= columns)).toBe(true);
  }
});

test('a flood of deltas is drawn at most four times a second', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, view, play } = await playing(events, { columns: 80, rows: 24 });
  const start = until(events, ({ type }) => type === 'tool_execution_delta');
  await play(start);
  const delta = events[start - 1];
  if (delta === undefined) throw new Error('no delta');
  await sleep(PAINTED_MS);
  const before = terminal.raw.split(BEGIN_PAINT).length;
  const begun = performance.now();
  let told = 0;
  while (performance.now() - begun < 1_000) {
    for (let each = 0; each < 500; each++) await view.show({ ...delta, delta: `line ${(told += 1)}\n` } as Recorded);
    await sleep(1);
  }
  const tookMs = performance.now() - begun;
  expect(terminal.raw.split(BEGIN_PAINT).length - before).toBeLessThanOrEqual(Math.ceil(tookMs / 250));
  await sleep(PAINTED_MS);
  expect((await terminal.screen()).at(-1)).toBe(`› task-1: line ${told}`);
});

test('a closed terminal, or closing twice, causes no error', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, view, play } = await playing(events, { columns: 80, rows: 24 });
  await play(20);
  terminal.output.on('error', () => undefined);
  terminal.output.destroy(Object.assign(new Error('gone'), { code: 'EPIPE' }));
  let written = '';
  terminal.output.write = (chunk: string) => (written += chunk) !== '';
  await sleep(PAINTED_MS);
  await view.whileAsking(async () => undefined);
  await play(events.length);
  await view.close();
  expect(written).toBe('');
});

test('the dashboard leaves signals and the other stream to drover', async () => {
  const before = process.listenerCount('SIGINT');
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, play } = await playing(events, { columns: 80, rows: 24 });
  await play(20);
  expect(process.listenerCount('SIGINT')).toBe(before);
  terminal.output.write('written by somebody else\n');
  expect((await terminal.screen()).join()).toContain('written by somebody else');
});

test('a locale without Unicode gets ASCII marks', async () => {
  const { events } = sampleRun({ tasks: 20 });
  const { terminal, play } = await playing(events, { columns: 60, rows: 24 }, { ...PLAIN, LANG: 'C' });
  await play(until(events, gateOf('task-5')));
  await sleep(PAINTED_MS);
  // eslint-disable-next-line no-control-regex
  expect((await terminal.screen()).filter((line) => /[^\u0000-\u007F]/.test(line))).toEqual([]);
});

test('a run with nothing to do says so', async () => {
  const teller = new Teller();
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings });
  const end: Event = {
    type: 'run_end',
    outcome: 'done',
    exitCode: 0,
    tasks: [],
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  };
  teller.tell(end);
  const { terminal, play } = await playing(teller.events, { columns: 60, rows: 24 });
  await play(2);
  expect((await terminal.everything()).join('\n')).toContain('there was nothing to do');
});
