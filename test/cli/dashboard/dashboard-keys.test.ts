// The keyboard while the dashboard is shown: keys are not echoed, answer no question, and still send signals.

import { once } from 'node:events';
import type { Recorded } from '@drover/protocol/events';
import { expect, onTestFinished, test } from 'vitest';
import { dashboardView } from '../../../bin/views/dashboard/dashboard.ts';
import type { RunView } from '../../../bin/views/view.ts';
import { sampleRun } from '../../support/run/sample-run.ts';
import { FakeTerminal } from '../views/terminal.ts';

const { events } = sampleRun({ tasks: 3 });
const SHOW_CURSOR = '\u001B[?25h';
const PLAN = events.findIndex(({ type }) => type === 'plan_ready') + 1;

type Opened = {
  readonly terminal: FakeTerminal;
  readonly view: RunView;
  readonly play: (from: number, to: number) => Promise<void>;
  readonly pictures: () => Promise<number>;
};

function opened(): Opened {
  const terminal = new FakeTerminal({ columns: 80, rows: 24 });
  const view = dashboardView(terminal.io({ NO_COLOR: '1' }), () => Date.parse(events[PLAN]?.at ?? ''));
  onTestFinished(() => view.close());
  const play = async (from: number, to: number): Promise<void> => {
    for (const event of events.slice(from, to)) await view.show(event as Recorded);
  };
  const pictures = async () => {
    await terminal.screen();
    return terminal.raw.split('drover  Replace').length - 1;
  };
  return { terminal, view, play, pictures };
}

/** Presses keys, and waits until they are read. */
async function press({ keys }: FakeTerminal, text: string): Promise<void> {
  const read = once(keys, 'data');
  keys.write(text);
  await read;
}

test('the terminal is raw from the first frame to the last', async () => {
  const { terminal, play } = opened();
  expect(terminal.isRaw).toBe(false);
  await play(0, PLAN);
  expect(terminal.isRaw).toBe(true);
  await play(PLAN, events.length);
  expect(terminal.isRaw).toBe(false);
  expect(terminal.keys.isPaused()).toBe(true);
  expect([terminal.resumed.size, terminal.exits.size, terminal.keys.listenerCount('error')]).toEqual([0, 0, 0]);
});

test('Ctrl-C and Ctrl-Z send their signals, and keys without a meaning do nothing', async () => {
  const { terminal, play } = opened();
  await play(0, PLAN);
  await terminal.until((text) => text.includes('task-1'));
  const before = await terminal.screen();
  await press(terminal, 'yez\u001B[5~');
  expect(terminal.signals).toEqual([]);
  await press(terminal, 'y\u0003n\u0003');
  expect(terminal.signals).toEqual(['SIGINT raw', 'SIGINT raw']);
  expect(await terminal.screen()).toEqual(before);
  await press(terminal, '\u001A');
  expect(terminal.signals.slice(2)).toEqual(['SIGTSTP normal']);
});

test('keys typed before the first frame do nothing', async () => {
  const { terminal, play } = opened();
  terminal.keys.write('?');
  await play(0, PLAN);
  await terminal.until((text) => text.includes('task-1'));
  await press(terminal, 'j');
  expect((await terminal.screen()).join('\n')).not.toContain('── keys');
  await press(terminal, '?');
  await terminal.until((text) => text.includes('── keys'));
});

test('Ctrl-\\ restores the terminal before its signal ends the process', async () => {
  const { terminal, play } = opened();
  await play(0, PLAN);
  await press(terminal, '\u001C');
  await terminal.screen();
  expect(terminal.signals).toEqual(['SIGQUIT normal']);
  expect(terminal.raw).toContain(SHOW_CURSOR);
});

test('a suspended dashboard releases the terminal and redraws on resume', async () => {
  const { terminal, play, pictures } = opened();
  await play(0, PLAN);
  await terminal.screen();
  terminal.onSignal = () => {
    terminal.output.write('[1]+  Stopped\n$ fg\n');
    for (const listener of terminal.resumed) listener();
  };
  await press(terminal, '\u001A');
  expect(terminal.signals).toEqual(['SIGTSTP normal']);
  expect(terminal.isRaw).toBe(true);
  await play(PLAN, PLAN + 1);
  expect(await pictures()).toBe(2);
  expect(terminal.raw).toContain(`${SHOW_CURSOR}[1]+  Stopped`);
  expect(terminal.isCursorVisible).toBe(false);
});

test('a dashboard in the background leaves the terminal in its mode', async () => {
  const { terminal, play, pictures } = opened();
  terminal.isForeground = false;
  await play(0, PLAN);
  expect(await pictures()).toBe(1);
  expect(terminal.isRaw).toBe(false);
  terminal.isForeground = true;
  await expect.poll(() => terminal.isRaw, { timeout: 20_000 }).toBe(true);
});

test('a question gets the terminal in normal mode, and the dashboard takes it back', async () => {
  const { terminal, view, play } = opened();
  await play(0, PLAN);
  await view.whileAsking(async () => {
    await terminal.screen();
    expect([terminal.isRaw, terminal.keys.isPaused(), terminal.isCursorVisible]).toEqual([false, true, true]);
    await play(PLAN, PLAN + 1);
    for (const listener of terminal.resumed) listener();
    expect(terminal.isRaw).toBe(false);
  });
  await terminal.screen();
  expect([terminal.isRaw, terminal.isCursorVisible]).toEqual([true, false]);
});

test('a process that exits in a frame restores the cursor', async () => {
  const { terminal, play } = opened();
  await play(0, PLAN);
  await terminal.screen();
  expect(terminal.isCursorVisible).toBe(false);
  for (const listener of terminal.exits) listener();
  await terminal.screen();
  expect(terminal.isCursorVisible).toBe(true);
});
