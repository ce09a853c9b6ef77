// The dashboard as a user sees it: events of runs go in, and the screen of a terminal is read.

import { setTimeout as sleep } from 'node:timers/promises';
import { RunState } from '@drover/coordinator/view/state';
import type { Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { EMPTY_DESK, dashboardFrame } from '../../../bin/views/dashboard/frame.ts';
import { textOnOneLine } from '../../../bin/views/text/terminal-text.ts';
import { sampleRun, sampleSettings, Teller } from '../../support/run/sample-run.ts';
import type { Size } from '../views/terminal.ts';
import { gateOf, PAINTED_MS, PLAIN, playing, until } from './playing.ts';

const BEGIN_PAINT = '\u001B[?2026h';

test('the dashboard shows landed, active and waiting tasks, and each last line', async () => {
  const { events } = sampleRun({ tasks: 10, cap: { usd: 5 } });
  const { terminal, play } = await playing(events, { columns: 80, rows: 24 });
  await play(until(events, gateOf('task-5')) - 40);
  await sleep(PAINTED_MS);
  expect(await terminal.screen()).toMatchInlineSnapshot(`
    [
      "drover  Replace moment with date-fns everywhere",
      "3 of 10 landed · $0.0500 of $5.00 · 11s · about 4s left · 43.6k tokens",
      "",
      "› ● task-4   thinking         2s   10.9k  $0.0125  Calendar",
      "  ● task-5   thinking         2s                   Time zones of the scheduler",
      "  ● task-6   thinking         2s                   Replace moment in the API c…",
      "  · task-7   waiting                               Billing",
      "  · task-8   waiting                               Format dates in the weekly …",
      "  · task-9   waiting                               Calendar",
      "  · task-10  waiting                               for task-4",
      "  ✓ task-1   landed           4s   10.9k  $0.0125  Replace moment in the API c…",
      "  ✓ task-2   landed           4s   10.9k  $0.0125  Billing",
      "  ✓ task-3   landed           4s   10.9k  $0.0125  Format dates in the weekly …",
      "",
      "› task-6: ok 2",
      "",
      "↑↓ select · Enter open · d diff · s message · r retry · x cancel · ? keys",
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
      "drover  Replace moment with date-fns everywhere",
      "planning · 1s · 0 tokens",
      "",
      "› ▸ coordinator  running                               grep: moment",
      "",
      "↑↓ select · Enter open · d diff · s message · r retry · x cancel · ? keys",
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
      "› ▸ task-7   running          1s",
      "  ● task-8   thinking         1s",
      "  ● task-9   thinking         1s",
      "  ✗ task-4   failed           5s",
      "  · task-10  waiting",
      "  … and 15 more: 10 waiting, 5 landed",
      "› task-8: Looking at Format dates in t…",
      "Enter open · s message · ? keys",
    ]
  `);
});

test('a tall terminal shows all tasks that fit, live ones first', async () => {
  const { events } = sampleRun({ tasks: 60 });
  const { terminal, play } = await playing(events, { columns: 200, rows: 50 });
  await play(until(events, gateOf('task-13')));
  await sleep(PAINTED_MS);
  const screen = await terminal.screen();
  expect(screen).toHaveLength(50);
  const rows = screen.filter((line) => /^. . task-\d/.test(line));
  expect(rows.length).toBeGreaterThan(38);
  expect(rows.findIndex((line) => line.includes('waiting'))).toBeGreaterThan(
    rows.findLastIndex((line) => /thinking|running|gate /.test(line)),
  );
  expect(screen.find((line) => line.includes('… and'))).toMatch(
    /^ {2}… and \d+ more: (\d+ waiting, )?7 landed, 1 done, 1 skipped$/,
  );
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
    const { terminal, view, play } = await playing(events, size, { env, hasKeys: false });
    await play(3);
    await play(half);
    await sleep(PAINTED_MS);
    const state = stateAfter(events.slice(0, half));
    const { lines: meant } = dashboardFrame(
      state,
      { ...EMPTY_DESK, notes: notesIn(events.slice(0, half)) },
      {
        columns: size.columns - 1,
        rows: size.rows,
        now: Date.parse(events[half - 1]?.at ?? ''),
        style: (_format, text) => text,
        ascii: false,
        loudest: loudestIn(state),
        isOperable: false,
      },
    );
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

function notesIn(events: readonly Recorded[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.type === 'permission_request')
      return [textOnOneLine(`? ${event.task}: ${event.summary} — ${event.why}`, Infinity)];
    return event.type === 'warning'
      ? [textOnOneLine(`! ${event.task === undefined ? '' : `${event.task}: `}${event.message}`, Infinity)]
      : [];
  });
}

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

// The second screen; all at once, without wrapping; hide the cursor, show it; go somewhere and erase.
const PAINTING: readonly string[] = [
  '?1049h',
  '?1049l',
  '?2026h',
  '?2026l',
  '?25h',
  '?25l',
  '?7h',
  '?7l',
  'H',
  'J',
  'K',
];

test('at the end each row keeps its last state, the report follows, the cursor is back', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, view, play } = await playing(events, { columns: 80, rows: 40 });
  await play(events.length);
  await view.close();
  expect(await terminal.everything()).toMatchInlineSnapshot(`
    [
      "drover  Replace moment with date-fns everywhere",
      "3 of 3 landed · $0.0500 · 8s · 43.6k tokens",
      "",
      "✓ task-1  landed           4s   10.9k  $0.0125  Replace moment in the API clie…",
      "✓ task-2  landed           4s   10.9k  $0.0125  Billing",
      "✓ task-3  landed           4s   10.9k  $0.0125  Format dates in the weekly rep…",
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
      "Tested: what landed passes pnpm test",
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
      "  drover diff 1a2b3c4d          look at the changes",
      "  git merge drover/1a2b/merged  take it over",
      "  drover show 1a2b3c4d          look at it again",
    ]
  `);
  expect(terminal.isCursorVisible).toBe(true);
});

test('nothing is drawn while drover asks on the first screen, whose text stays', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, view, play } = await playing(events, { columns: 60, rows: 20 }, { hasKeys: false });
  terminal.output.write('$ drover run\n');
  await play(until(events, ({ type }) => type === 'permission_request'));
  await view.whileAsking(async () => {
    await view.whileAsking(async () => terminal.output.write('  Allow one? y\n'));
    terminal.output.write('  Allow shell: x? [y]es [n]o [a]lways: ');
    await play(until(events, ({ type }) => type === 'permission_decision') + 5);
    await sleep(PAINTED_MS);
    expect(await terminal.screen()).toEqual([
      '$ drover run',
      '? task-2: shell: pnpm test task-2 — no rule allows it',
      '  Allow one? y',
      '  Allow shell: x? [y]es [n]o [a]lways: ',
    ]);
    expect(terminal.isCursorVisible).toBe(true);
    terminal.output.write('y\n');
  });
  expect((await terminal.screen()).slice(0, 2)).toEqual([
    'drover  Replace moment with date-fns everywhere',
    '0 of 3 landed · $0.0250 · 6s · 21.8k tokens',
  ]);
  expect(terminal.isCursorVisible).toBe(false);
  await play(events.length);
  await view.close();
  const lines = await terminal.everything();
  expect(lines.slice(0, 5)).toEqual([
    '$ drover run',
    '? task-2: shell: pnpm test task-2 — no rule allows it',
    '  Allow one? y',
    '  Allow shell: x? [y]es [n]o [a]lways: y',
    'drover  Replace moment with date-fns everywhere',
  ]);
  expect(lines.filter((line) => line.startsWith('drover  '))).toHaveLength(1);
});

test('nothing is drawn before the run begins', async () => {
  const { terminal } = await playing([], { columns: 60, rows: 20 });
  await sleep(PAINTED_MS);
  expect(await terminal.screen()).toEqual([]);
});

test('warnings are shown as notes, and stay on the first screen', async () => {
  const teller = new Teller();
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings });
  teller.tell({ type: 'warning', message: 'the disk is nearly full, and this is a long sentence about it' });
  const { terminal, view, play } = await playing(teller.events, { columns: 40, rows: 12 });
  await play(2);
  await view.say('going on with run 1a2b');
  await terminal.until((text) => text.includes('going on'));
  expect(await terminal.screen()).toEqual([
    'drover  Replace moment with date-fns e…',
    'planning · 0s · 0 tokens',
    'going on with run 1a2b',
    'Enter open · s message · ? keys',
  ]);
  await view.close();
  expect((await terminal.screen()).slice(0, 4)).toEqual([
    '! the disk is nearly full, and this is a',
    '  long sentence about it',
    'going on with run 1a2b',
    'drover  Replace moment with date-fns e…',
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
    expect(screen.filter((line) => /^. . task-\d/.test(line))).toHaveLength(8);
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
  expect(await terminal.screen()).toContain(`› task-1: line ${told}`);
});
