// The dashboard at the bottom of a full screen, where every new line scrolls the others up.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { dashboardView } from '../../../bin/views/dashboard/dashboard.ts';
import { sampleRun } from '../../support/run/sample-run.ts';
import { FakeTerminal } from './terminal.ts';

const PAINTED_MS = 300; // paints are at most a quarter of a second apart
const ROWS = 24;
const BEFORE = 'what was there before';

test('at the bottom of a full screen the whole dashboard stays visible as it grows', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const plan = events.findIndex(({ type }) => type === 'plan_ready');
  const terminal = new FakeTerminal({ columns: 80, rows: ROWS });
  terminal.output.write(`${BEFORE}\n`.repeat(ROWS));
  let told = 0;
  const view = dashboardView(terminal.io({ NO_COLOR: '1' }), () => Date.parse(events[0]?.at ?? ''));
  onTestFinished(() => view.close());
  const seenAfter = async (to: number): Promise<readonly string[]> => {
    for (const event of events.slice(told, to)) await view.show(event);
    told = to;
    await sleep(PAINTED_MS);
    const screen = await terminal.screen();
    const picture = screen.slice(screen.lastIndexOf(BEFORE) + 1);
    return picture.map((line) => line.split(' ', 2).join(' ').trim());
  };

  // The first lines stay unchanged while others are added below.
  expect(await seenAfter(1)).toEqual(['', 'drover', 'planning ·']);
  expect(await seenAfter(2)).toEqual(['', 'drover', 'planning ·', '', '○ coordinator']);
  expect(await seenAfter(plan)).toEqual(['', 'drover', 'planning ·', '', '▸ coordinator']);
  const [, head, counts, gap, ...tasks] = await seenAfter(plan + 8);
  expect([head, counts, gap]).toEqual(['drover', '0 of', '']);
  expect(tasks.filter((line) => /task-\d/.test(line))).toHaveLength(3);
});
