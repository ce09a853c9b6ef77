// The time that a run has worked counts for its deadline and its report, and never the time in which no process ran.

import { join } from 'node:path';
import { Journal } from '@drover/core/journal/file/journal';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import { openRunJournal, runFolder } from '@drover/coordinator/run/journal';
import { readRunHistory } from '@drover/coordinator/run/history';
import { RunState } from '@drover/coordinator/view/state';
import type { JsonObject } from '@drover/protocol/json';
import type { Event, Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/agent.ts';
import { sampleSettings, Teller } from '../support/run/sample-run.ts';

const START: Event = { type: 'run_start', resumed: false, ...sampleSettings };
const SECOND = 1_000;
const DAY = 86_400_000;

/** The worked time by the history, which limits the run, and by the state, which views show. */
function worked(events: readonly Recorded[]): readonly number[] {
  const state = new RunState();
  for (const event of events) state.take(event);
  return [
    readRunHistory(events as unknown as readonly JsonObject[])?.activeMs ?? -1,
    state.elapsedMs(Date.parse(events.at(-1)?.at ?? '')),
  ];
}

test('a run killed in the middle of an answer has not worked until it is opened again', async () => {
  const home = await temporaryFolder();
  const teller = new Teller(undefined, Date.now() - DAY);
  teller.tell(START);
  teller.tell({ type: 'message_start', role: 'assistant' }, { worker: 0 }, 5 * SECOND);
  const path = join(runFolder(home, teller.run), 'journal.jsonl');
  const hooks = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };
  const { journal } = await Journal.open({ path, run: teller.run, ...hooks });
  await journal.append(teller.events as unknown as readonly JsonObject[], true);
  await journal.close();
  const opened = await openRunJournal(home, teller.run, hooks);
  expect(opened.past?.activeMs).toBe(5 * SECOND);
  expect(opened.past && worked(opened.past.records)).toEqual([5 * SECOND, 5 * SECOND]);
  await opened.close();
});

test('what is written to a journal between two processes of a run takes no time', () => {
  const teller = new Teller();
  teller.tell(START);
  teller.tell({ type: 'run_end', outcome: 'done', exitCode: 0, tasks: [], usage: NO_USAGE }, {}, 2 * SECOND);
  teller.tell({ type: 'delivered', delivered: { deliver: 'branch', commit: 'c' } }, {}, DAY);
  expect(worked(teller.events)).toEqual([2 * SECOND, 2 * SECOND]);
  teller.tell({ type: 'tasks_reopened', tasks: [] }, {}, DAY);
  teller.tell({ ...START, resumed: true }, {}, DAY);
  teller.tell({ type: 'warning', message: 'at work again' }, {}, SECOND);
  expect(worked(teller.events)).toEqual([3 * SECOND, 3 * SECOND]);
});

test('a clock that is set back takes no time away', () => {
  const teller = new Teller();
  teller.tell(START);
  teller.tell({ type: 'warning', message: 'before' }, {}, 2 * SECOND);
  teller.tell({ type: 'warning', message: 'the clock is set back' }, {}, -DAY);
  teller.tell({ type: 'warning', message: 'after' }, {}, SECOND);
  expect(worked(teller.events)).toEqual([3 * SECOND, 3 * SECOND]);
});
