// The timeline: bars on lanes.

import type { Event, Place } from '@drover/protocol/events';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import { RunFold } from '@drover/server/page/run-fold';
import { type Bar, Lane } from '@drover/server/page/timeline';
import { expect, test } from 'vitest';
import { label, sampleRun, sampleSettings, Teller } from '../../support/run/sample-run.ts';

const WORKER: Place = { worker: 1, task: 't', attempt: 1 };

/** A lane after these events, each at this many milliseconds. */
function lane(...events: readonly (readonly [ms: number, event: Event, place?: Place])[]): Lane {
  const made = new Lane(1);
  for (const [ms, event, place = WORKER] of events) {
    const teller = new Teller();
    teller.tell(event, place);
    for (const told of teller.events) made.take(told, ms);
  }
  return made;
}

const bars = ({ bars: all }: { readonly bars: readonly Bar[] }): readonly string[] =>
  all.map(({ kind, label: name, fromMs, firstMs, toMs, state, row, rows }) => {
    const heard = firstMs === undefined ? '' : ` (${firstMs})`;
    return `${kind} ${name}: ${fromMs}${heard}–${toMs ?? '…'} ${state}${rows > 1 ? `, row ${row} of ${rows}` : ''}`;
  });

const user: Event = { type: 'message_end', message: { role: 'user', content: [] } };
const begins: Event = { type: 'message_start', role: 'assistant' };
const answer: Event = {
  type: 'message_end',
  message: { role: 'assistant', content: [], stop: 'stop', usage: NO_USAGE },
};
const starts = (name: string): Event => ({ type: 'tool_execution_start', args: {}, ...label(1, name) });
const ends = (name: string, isError = false): Event => ({
  type: 'tool_execution_end',
  output: '',
  outputSummary: '',
  isError,
  ...label(1, name),
});

test('a step spans request, first word and whole answer; a call spans start to end', () => {
  const made = lane(
    [0, user],
    [40, begins, { ...WORKER, step: 1 }],
    [90, answer],
    [100, starts('read: a')],
    [130, ends('read: a', true)],
    [140, { type: 'message_end', message: { role: 'tool', results: [] } }],
  );
  expect(bars(made)).toEqual([
    'step Step 1: 0 (40)–90 ok',
    'call read: a: 100–130 bad',
    'step Asks the model: 140–… open',
  ]);
});

test('concurrent calls are drawn below each other', () => {
  const made = lane(
    [0, starts('a')],
    [10, starts('b')],
    [20, ends('a')],
    [30, starts('c')],
    [40, ends('b')],
    [50, ends('c')],
    [60, starts('d')],
    [70, ends('d')],
  );
  expect(bars(made)).toEqual([
    'call a: 0–20 ok, row 0 of 2',
    'call b: 10–40 ok, row 1 of 2',
    'call c: 30–50 ok, row 0 of 2',
    'call d: 60–70 ok',
  ]);
});

test('a wait for the throttle is a bar, reported before or after', () => {
  const wait: Event = { type: 'throttle_wait', waitMs: 2_000, reason: 'requests' };
  expect(bars(lane([0, user], [10, wait], [1_900, begins]))).toEqual([
    'step Step: 0 (1900)–… open',
    'wait Throttled: requests: 10–1900 held',
  ]);
  expect(bars(lane([0, user], [2_050, wait], [2_100, begins]))).toEqual([
    'step Step: 0 (2100)–… open',
    'wait Throttled: requests: 50–2050 held',
  ]);
});

test('a wait for the user is a bar from the question to its answer', () => {
  const call = label(1, 'shell: make');
  const made = lane(
    [0, { type: 'permission_request', requestId: 'q', subject: 'make', why: 'unknown', ...call }],
    [500, { type: 'permission_decision', requestId: 'q', allowed: true, by: 'user', always: false, ...call }],
  );
  expect(bars(made)).toEqual(['wait Asks: shell: make: 0–500 held']);
});

test('a question that was never sent is not a step, and one open at the end is bad', () => {
  expect(bars(lane([0, user], [10, { type: 'cancelled' }]))).toEqual([]);
  expect(bars(lane([0, starts('a')], [10, { type: 'cancelled' }]))).toEqual(['call a: 0–10 bad']);
});

test('a lane keeps its newest bars and says since when', () => {
  const many = Array.from({ length: 2_600 }, (_, at) => [
    [2 * at, starts(`${at}`)] as const,
    [2 * at + 1, ends(`${at}`)] as const,
  ]).flat();
  const made = lane(...many);
  expect([made.bars.length, made.bars[0]?.label, made.cutMs]).toEqual([2_100, '500', 999]);
});

test('a whole run has a lane per worker with its tasks, and one for merges', () => {
  const fold = new RunFold();
  const { events, statuses } = sampleRun({ tasks: 10 });
  for (const event of events) fold.take(event);

  expect(fold.lanes.map(({ worker, spans }) => [worker, spans.map(({ task }) => task)])).toEqual([
    [0, []],
    [1, ['task-1', 'task-4', 'task-4', 'task-7', 'task-10'].filter((task) => statuses[task] !== 'skipped')],
    [2, expect.arrayContaining(['task-2', 'task-5', 'task-8'])],
    [3, expect.arrayContaining(['task-3', 'task-6', 'task-9'])],
  ]);
  const all = [fold.train, ...fold.lanes].flatMap((each) => each.bars);
  expect(all.filter(({ toMs }) => toMs === undefined)).toEqual([]);
  expect(fold.train.bars.filter(({ kind, state }) => kind === 'merge' && state === 'ok').length).toBe(
    Object.values(statuses).filter((status) => status === 'landed').length,
  );
  expect(Object.fromEntries([...fold.state.tasks].map(([id, { state }]) => [id, state]))).toEqual(statuses);
  expect(fold.questions).toEqual([]);
  expect(fold.conversationOf('')?.entries.length).toBeGreaterThan(0);
});

test('a run resumed after a crash: open work is bad, and the clock stood still', () => {
  const teller = new Teller();
  const start: Event = { type: 'run_start', resumed: false, ...sampleSettings };
  const call = label(1, 'shell: make');
  teller.tell(start, {}, 0);
  teller.tell(starts('shell: make'), WORKER, 1_000);
  teller.tell({ type: 'permission_request', requestId: 'q', subject: '', why: '', ...call }, WORKER, 1_000);
  const fold = new RunFold();
  for (const event of teller.events) fold.take(event);
  expect(fold.questions.map(({ requestId }) => requestId)).toEqual(['q']);

  teller.tell({ ...start, resumed: true }, {}, 3_600_000);
  teller.tell(starts('read: a'), WORKER, 500);
  for (const event of teller.events.slice(-2)) fold.take(event);
  expect(fold.questions).toEqual([]);
  expect(fold.lanes.map(bars)).toEqual([
    [
      'call shell: make: 1000–2000 bad, row 0 of 2',
      'wait Asks: shell: make: 2000–2000 bad, row 1 of 2',
      'call read: a: 2500–… open',
    ],
  ]);
});

test('the coordinator’s call that a resumed run repeats has not failed', () => {
  const teller = new Teller();
  const start: Event = { type: 'run_start', resumed: false, ...sampleSettings };
  const { callId } = label(1, 'submit_plan: t');
  teller.tell(start, {}, 0);
  teller.tell(starts('submit_plan: t'), { worker: 0 }, 1_000);
  teller.tell({ type: 'plan_ready', tasks: [], round: 1, by: 'coordinator', callId }, { worker: 0 }, 0);
  teller.tell({ ...start, resumed: true }, {}, 3_600_000);
  teller.tell(starts('submit_plan: t'), { worker: 0 }, 500);
  teller.tell(ends('submit_plan: t'), { worker: 0 }, 500);
  const fold = new RunFold();
  for (const event of teller.events) fold.take(event);
  expect(fold.lanes.flatMap(bars).map((bar) => bar.replace(/: \d+–\d+/, ''))).toEqual([
    'call submit_plan: t held',
    'call submit_plan: t ok',
  ]);
});

test('of many tasks the newest conversations are kept, and the coordinator’s always', () => {
  const teller = new Teller();
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings });
  teller.tell(user, { worker: 0 });
  for (let at = 1; at <= 150; at++) teller.tell(user, { worker: 1, task: `t${at}` });
  const fold = new RunFold();
  for (const event of teller.events) fold.take(event);
  const kept = ['', 't1', 't31', 't32', 't150'].map((task) => fold.conversationOf(task) !== undefined);
  expect(kept).toEqual([true, false, false, true, true]);
});
