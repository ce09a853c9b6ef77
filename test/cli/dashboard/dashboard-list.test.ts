// A run as a listr2 list: its tasks, and how each one ended.

import { setImmediate as immediate } from 'node:timers/promises';
import { RunState } from '@drover/coordinator/view/state';
import type { Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { Keys } from '../../../bin/views/dashboard/keys.ts';
import { RunList } from '../../../bin/views/dashboard/run-list.ts';
import { FullScreen } from '../../../bin/views/dashboard/full-screen.ts';
import { Operator } from '../../../bin/views/dashboard/operator.ts';
import { Conversations } from '../../../bin/views/dashboard/panels/conversation.ts';
import { Panels } from '../../../bin/views/dashboard/panels/panels.ts';
import { sampleRun } from '../../support/run/sample-run.ts';
import { FakeTerminal } from '../views/terminal.ts';

type Listed = { readonly title?: string; readonly state: string; readonly subtasks?: readonly Listed[] };

const treeOf = (tasks: readonly Listed[] = [], indent = ''): readonly string[] =>
  tasks.flatMap(({ title, state, subtasks }) => [`${indent}${title} ${state}`, ...treeOf(subtasks, `${indent}  `)]);

function listed(): { readonly list: RunList; readonly play: (events: readonly Recorded[]) => void } {
  const io = new FakeTerminal({ columns: 80, rows: 24 }).io({});
  const state = new RunState();
  const style = (_: unknown, text: string) => text;
  const looks = { style, isColoured: false, isAscii: false, hasLinks: false };
  const onChange = () => undefined;
  const panels = new Panels({ output: io.stdout, looks, conversations: new Conversations(), onChange });
  const list = new RunList({
    state,
    screen: new FullScreen(io),
    keys: new Keys(io, { pressed: () => undefined, released: () => undefined, resumed: () => undefined }),
    operator: new Operator({ state, panels, questions: undefined, style, onChange }),
    output: io.stdout,
    style,
    ascii: false,
    now: () => 0,
  });
  const play = (events: readonly Recorded[]): void => {
    for (const event of events) {
      state.take(event);
      list.take(event);
    }
  };
  return { list, play };
}

test('each piece of work is a listr2 task that settles with it', async () => {
  const { events } = sampleRun({ tasks: 10 });
  const { list, play } = listed();
  const ran = list.run();
  const middle = events.findIndex(({ type, task }) => type === 'merge_end' && task === 'task-2') + 1;
  play(events.slice(0, middle));
  await immediate(); // listr2 starts tasks in microtasks; all of them run before a timer
  expect(treeOf(list.listr.tasks)).toMatchInlineSnapshot(`
    [
      "coordinator STARTED",
      "  task-1 COMPLETED",
      "    merge COMPLETED",
      "      gate: pnpm test COMPLETED",
      "        merge COMPLETED",
      "  task-2 COMPLETED",
      "    merge COMPLETED",
      "      gate: pnpm test COMPLETED",
      "        merge COMPLETED",
      "  task-3 STARTED",
      "    merge STARTED",
      "      gate: pnpm test STARTED",
      "        merge STARTED",
      "  task-4 STARTED",
      "  task-5 STARTED",
      "  task-6 STARTED",
      "  task-7 STARTED",
      "  task-8 STARTED",
      "  task-9 STARTED",
      "  task-10 STARTED",
      "  coordinator STARTED",
    ]
  `);
  play(events.slice(middle));
  list.end();
  await ran;
  expect(treeOf(list.listr.tasks)).toMatchInlineSnapshot(`
    [
      "coordinator COMPLETED",
      "  task-1 COMPLETED",
      "    merge COMPLETED",
      "      gate: pnpm test COMPLETED",
      "        merge COMPLETED",
      "  task-2 COMPLETED",
      "    merge COMPLETED",
      "      gate: pnpm test COMPLETED",
      "        merge COMPLETED",
      "  task-3 COMPLETED",
      "    merge COMPLETED",
      "      gate: pnpm test COMPLETED",
      "        merge COMPLETED",
      "  task-4 COMPLETED",
      "    attempt 2 FAILED",
      "  task-5 COMPLETED",
      "    attempt 2 COMPLETED",
      "      merge COMPLETED",
      "        gate: pnpm test COMPLETED",
      "          merge COMPLETED",
      "  task-6 COMPLETED",
      "    merge COMPLETED",
      "      attempt 2 COMPLETED",
      "        merge COMPLETED",
      "          gate: pnpm test COMPLETED",
      "            merge COMPLETED",
      "  task-7 COMPLETED",
      "    merge COMPLETED",
      "      gate: pnpm test COMPLETED",
      "        merge FAILED",
      "  task-8 COMPLETED",
      "  task-9 COMPLETED",
      "    merge COMPLETED",
      "      attempt 2 COMPLETED",
      "        merge FAILED",
      "  task-10 FAILED",
      "  coordinator COMPLETED",
    ]
  `);
});
