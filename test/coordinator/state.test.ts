// RunState, fed with the events of runs.

import { expect, test } from 'vitest';
import { taskRowsOfState, RunState, type TaskProgress, type TaskState } from '@drover/coordinator/view/state';
import type { Event, Place, Recorded } from '@drover/protocol/events';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import type { PlannedTask } from '@drover/protocol/plan';
import { label, sampleRun, sampleSettings, Teller } from '../support/run/sample-run.ts';

const SEED = { seeding: 'none', messages: 0, tokens: 0, digest: '' } as const;
const START: Event = { type: 'run_start', resumed: false, ...sampleSettings };
const BEGIN: Event = { type: 'task_start', base: 'base0000', workspace: '/ws/1', seed: SEED };
const AT_A: Place = { worker: 1, task: 'a', attempt: 1 };
const USAGE = { input: 10, output: 20, cacheRead: 30, cacheWrite: 0 };

function planned(id: string, dependsOn: readonly string[] = []): PlannedTask {
  return { id, title: `Do ${id}`, prompt: '', dependsOn, files: [], mode: 'write' };
}

const plan = (...tasks: readonly PlannedTask[]): Event => ({ type: 'plan_ready', tasks, round: 1, by: 'coordinator' });
const finished = (commit?: string): Event => ({
  type: 'task_end',
  status: 'finished',
  again: false,
  files: ['a.ts'],
  usage: USAGE,
  cost: 0.5,
  ...(commit !== undefined && { commit, branch: 'drover/1/a' }),
});
const failed = (again: boolean): Event => ({
  type: 'task_end',
  status: 'failed',
  again,
  failure: { kind: 'worker.lost', message: 'gone' },
  files: [],
  usage: USAGE,
  cost: 0.5,
});

function folded(events: readonly Recorded[]): RunState {
  const state = new RunState();
  for (const event of events) state.take(event);
  return state;
}

/** Task `a` in its first attempt, then the given events. */
function atWork(...events: readonly (readonly [Event, Place?])[]): {
  readonly teller: Teller;
  readonly state: RunState;
} {
  const teller = new Teller();
  teller.tell(START);
  teller.tell(plan(planned('a'), planned('b', ['a'])));
  teller.tell(BEGIN, AT_A);
  for (const [event, place] of events) teller.tell(event, place ?? AT_A);
  return { teller, state: folded(teller.events) };
}

function taskOf(state: RunState, id: string): TaskProgress {
  const task = state.tasks.get(id);
  if (task === undefined) throw new Error(`no task ${id}`);
  return task;
}

test.each([3, 10, 20])('the rows of a run with %i tasks match its run_end', (tasks) => {
  const { events, rows } = sampleRun({ tasks });
  const untimed = (state: RunState) => taskRowsOfState(state).map((row) => ({ ...row, elapsedMs: undefined }));
  expect(untimed(folded(events.slice(0, -1)))).toEqual(rows);
  expect(untimed(folded(events))).toEqual(rows);
});

test('the state follows a task through its attempts, the merge and the gate', () => {
  const { events } = sampleRun({ tasks: 10 });
  const state = new RunState();
  const ways = new Map<string, TaskState[]>();
  for (const event of events) {
    state.take(event);
    for (const { id, state: now } of state.tasks.values()) {
      const way = ways.get(id) ?? [];
      if (way.at(-1) !== now) ways.set(id, [...way, now]);
    }
  }
  const told = [...ways].map(([id, way]) => `${id}: ${way.join(' ')}`);
  expect(told).toMatchInlineSnapshot(`
    [
      "task-1: waiting starting thinking running thinking merging gate merging landed",
      "task-2: waiting starting thinking asking thinking running thinking merging gate merging landed",
      "task-3: waiting starting throttled thinking running thinking merging gate merging landed",
      "task-4: waiting starting thinking running thinking retrying starting thinking running thinking failed",
      "task-5: waiting starting thinking running thinking retrying starting thinking running thinking merging gate merging landed",
      "task-6: waiting starting thinking running thinking merging retrying starting thinking running thinking merging gate merging landed",
      "task-7: waiting starting thinking running thinking merging gate merging gate_failed",
      "task-8: waiting starting thinking running thinking done",
      "task-9: waiting starting thinking running thinking merging retrying starting thinking running thinking merging conflict",
      "task-10: waiting skipped",
    ]
  `);
});

test.each<[string, Event, TaskState, string]>([
  ['a message', { type: 'message_start', role: 'assistant' }, 'thinking', ''],
  ['a call', { type: 'tool_execution_start', args: {}, ...label(1, 'read: a.ts') }, 'running', 'read: a.ts'],
  [
    'a question',
    { type: 'permission_request', requestId: 'q', subject: 'rm', why: 'no rule', ...label(1, 'shell: rm') },
    'asking',
    'shell: rm',
  ],
  ['a throttle', { type: 'throttle_wait', waitMs: 200, reason: 'too many requests' }, 'throttled', 'too many requests'],
  [
    'a retry',
    { type: 'retry', retry: 2, retriesMax: 5, delayMs: 4_200, failure: { kind: 'answer.empty' }, reason: 'nothing' },
    'retrying',
    'retry 2 of 5 in 4.2 s: nothing',
  ],
  ['a shortening', { type: 'compaction_start', tokens: 9, reason: 'limit' }, 'thinking', 'shortens its conversation'],
])('%s is what the task is doing', (_, event, expected, doing) => {
  const { state, doing: told } = taskOf(atWork([event]).state, 'a');
  expect([state, told]).toEqual([expected, doing]);
});

test('of concurrent calls the last is shown with a count, and a question wins', () => {
  const [one, two] = [label(1, 'read: one'), label(1, 'read: two')];
  const { teller, state } = atWork(
    [{ type: 'tool_execution_start', args: {}, ...one }],
    [{ type: 'tool_execution_start', args: {}, ...two }],
  );
  expect(taskOf(state, 'a').doing).toBe('read: two and 1 more');
  teller.tell({ type: 'permission_request', requestId: 'q', subject: 'rm', why: '', ...label(1, 'shell: rm') }, AT_A);
  teller.tell({ type: 'tool_execution_end', output: '', outputSummary: '', isError: false, ...two }, AT_A);
  expect(taskOf(folded(teller.events), 'a').state).toBe('asking');
});

test('the last non-empty line is kept, however the deltas split it', () => {
  const says = (delta: string): readonly [Event] => [{ type: 'text_delta', part: 0, delta }];
  const lastLine = (...deltas: readonly string[]): string => taskOf(atWork(...deltas.map(says)).state, 'a').lastLine;
  expect(lastLine('one\ntw', 'o')).toBe('two');
  expect(lastLine('one\ntwo\n', '\n  \n')).toBe('two');
  expect(lastLine('10 %\r20 %\r', '30')).toBe('30');
  expect(lastLine('x'.repeat(600), 'y'.repeat(600))).toHaveLength(500);
});

test('an ended attempt changes nothing any more', () => {
  const { teller } = atWork([failed(true)]);
  teller.tell(BEGIN, { ...AT_A, attempt: 2, worker: 2 });
  teller.tell({ type: 'tool_execution_start', args: {}, ...label(1, 'shell: late') }, AT_A);
  const task = taskOf(folded(teller.events), 'a');
  expect([task.state, task.doing, task.attempts, task.worker]).toEqual(['starting', '', 2, 2]);
});

test('tokens, cost and waits are summed over all attempts', () => {
  const { teller } = atWork(
    [{ type: 'throttle_wait', waitMs: 200, reason: '' }],
    [{ type: 'usage', usage: USAGE, total: USAGE, cost: 0.5 }],
    [failed(true)],
  );
  const second = { ...AT_A, attempt: 2 };
  teller.tell(BEGIN, second);
  teller.tell({ type: 'throttle_wait', waitMs: 300, reason: '' }, second);
  teller.tell({ type: 'usage', usage: USAGE, total: USAGE, cost: 0.25 }, second);
  const { usage, cost, waitMs } = taskOf(folded(teller.events), 'a');
  expect({ usage, cost, waitMs }).toEqual({
    usage: { input: 20, output: 40, cacheRead: 60, cacheWrite: 0 },
    cost: 0.75,
    waitMs: 500,
  });
});

test('without usage events an attempt’s usage is that of its end', () => {
  expect(taskOf(atWork([finished('c1')]).state, 'a').usage).toEqual(USAGE);
});

test('landings are known in their order, with the head', () => {
  const { events, statuses } = sampleRun({ tasks: 10 });
  const state = folded(events);
  const landed = Object.keys(statuses).filter((task) => statuses[task] === 'landed');
  expect(state.landed.map(({ task }) => task)).toEqual(landed);
  expect(state.head).toBe(state.landed.at(-1)?.commit);
  expect(folded(events.slice(0, 2)).head).toBe(sampleSettings.base);
});

test('gate results are found by tree and command, and by the task they failed', () => {
  const state = folded(sampleRun({ tasks: 10 }).events);
  expect(state.gateResult('tree-task-1-task-2-task-3', 'pnpm test')?.passed).toBe(true);
  expect(state.gateResult('tree-task-1-task-2-task-3', 'other')).toBeUndefined();
  expect(state.failedGate('task-7')).toMatchObject({ passed: false, tasks: ['task-7'] });
  expect(state.failedGate('task-1')).toBeUndefined();
});

test('a task that a later plan names again is retried, and its attempts count on', () => {
  const { teller } = atWork([failed(false)]);
  teller.tell(
    { type: 'task_end', status: 'skipped', again: false, reason: 'a failed', files: [], usage: NO_USAGE },
    { task: 'b' },
  );
  teller.tell({ ...plan(planned('a')), round: 2 } as Event);
  const again = folded(teller.events);
  expect([taskOf(again, 'a').state, taskOf(again, 'a').reason, taskOf(again, 'b').state]).toEqual([
    'waiting',
    undefined,
    'skipped',
  ]);
  const second = { ...AT_A, attempt: 2 };
  teller.tell(BEGIN, second);
  teller.tell(finished('c2'), second);
  teller.tell({ type: 'merge_end', outcome: 'landed', again: false, commit: 'm2' }, second);
  const [row] = taskRowsOfState(folded(teller.events));
  expect(row).toMatchObject({ task: 'a', status: 'landed', attempts: 2, commit: 'm2', cost: 1 });
  expect(folded(teller.events).plans.map(({ tasks }) => tasks)).toEqual([['a', 'b'], ['a']]);
});

test('landed work stays landed, whatever a later plan says', () => {
  const { teller } = atWork([finished('c1')], [{ type: 'merge_end', outcome: 'landed', again: false, commit: 'm1' }]);
  teller.tell({ ...plan(planned('a')), round: 2 } as Event);
  expect(taskOf(folded(teller.events), 'a').state).toBe('landed');
});

test('tasks active at a stop are cancelled in their rows, with their progress', () => {
  const rows = taskRowsOfState(atWork().state);
  expect(rows.map(({ task, status, attempts, reason }) => [task, status, attempts, reason])).toEqual([
    ['a', 'cancelled', 1, 'it was not finished'],
    ['b', 'cancelled', 0, 'it was not begun'],
  ]);
});

test('a resumed run knows the cut-off attempt, and its time excludes the gap', () => {
  const hourMs = 3_600_000;
  const { teller, state: before } = atWork();
  expect(taskOf(before, 'a').isOpen).toBe(true);
  const workedMs = before.elapsedMs(teller.atMs);
  const cut = { type: 'task_end', status: 'cancelled', again: false, files: [], usage: NO_USAGE } as const;
  teller.tell(cut, AT_A, 0);
  teller.tell(
    {
      type: 'run_end',
      outcome: 'cancelled',
      exitCode: 130,
      tasks: taskRowsOfState(folded(teller.events)),
      usage: NO_USAGE,
    },
    {},
    0,
  );
  const ended = folded(teller.events);
  expect([taskOf(ended, 'a').state, taskOf(ended, 'a').isOpen, taskOf(ended, 'b').isOpen]).toEqual([
    'cancelled',
    true,
    false,
  ]);
  expect(ended.elapsedMs(teller.atMs + hourMs)).toBe(workedMs);

  teller.tell({ ...START, resumed: true } as Event, {}, hourMs);
  const resumed = folded(teller.events);
  expect([taskOf(resumed, 'a').state, taskOf(resumed, 'b').state, resumed.end]).toEqual([
    'waiting',
    'waiting',
    undefined,
  ]);
  expect(resumed.elapsedMs(teller.atMs + 1_000)).toBe(workedMs + 1_000);

  teller.tell({ type: 'usage', usage: USAGE, total: USAGE, cost: 0.5 }, AT_A);
  teller.tell({ type: 'message_start', role: 'assistant' }, AT_A);
  expect(taskOf(folded(teller.events), 'a').state).toBe('thinking');
});

test('the remaining time follows from task durations, parallel or in a chain', () => {
  const eta = (workers: number, ...others: readonly PlannedTask[]): number | undefined => {
    const teller = new Teller();
    teller.tell({ ...START, workers } as Event);
    teller.tell(plan(planned('a'), ...others));
    teller.tell(BEGIN, AT_A);
    teller.tell(finished(), AT_A, 60_000);
    return folded(teller.events).etaMs(teller.atMs);
  };
  expect(atWork().state.etaMs(0)).toBeUndefined();
  expect(eta(2)).toBe(0);
  expect(eta(2, planned('b'), planned('c'), planned('d'), planned('e'))).toBe(120_000);
  expect(eta(9, planned('b'), planned('c', ['b']), planned('d', ['c']))).toBe(180_000);
});

test('time spent waiting for the user is not the task’s, and the estimate pauses', () => {
  const asked = { requestId: 'ask_1', subject: 'x', why: 'y', ...label(1, 'shell: x') };
  const { teller, state } = atWork([finished('c1')], [{ type: 'merge_end', outcome: 'landed', again: false }]);
  const usual = taskOf(state, 'a').workedMs(0, 0);
  const begin = { worker: 1, task: 'b', attempt: 1 };
  teller.tell(BEGIN, begin);
  teller.tell({ type: 'permission_request', ...asked }, begin, 10);
  const open = folded(teller.events);
  const { atMs } = teller;
  const worked = (at: number) => taskOf(open, 'b').workedMs(open.elapsedMs(at), at);
  expect(usual).toBeGreaterThan(0);
  expect([worked(atMs), worked(atMs + 60_000)]).toEqual([10, 10]);
  expect(open.etaMs(atMs + 60_000)).toBe(open.etaMs(atMs));
  expect(open.etaMs(atMs)).toBeGreaterThan(0);
  teller.tell({ type: 'permission_decision', ...asked, allowed: true, by: 'user', always: false }, begin, 60_000);
  teller.tell(finished('c2'), begin, 5);
  teller.tell({ type: 'merge_end', outcome: 'landed', again: false }, begin, 5);
  expect(taskRowsOfState(folded(teller.events))[1]?.elapsedMs).toBe(20);
});

test('a task that the user cancelled stays so when the run is resumed', () => {
  const cancelled: Event = { ...failed(false), status: 'cancelled', failure: { kind: 'task.cancelled' } } as Event;
  const { teller } = atWork([cancelled]);
  teller.tell({ ...START, resumed: true } as Event);
  expect(taskOf(folded(teller.events), 'a').state).toBe('cancelled');
  teller.tell({ type: 'tasks_reopened', tasks: [planned('a')] });
  expect(taskOf(folded(teller.events), 'a').state).toBe('waiting');
});

test('spending comes from the budget, or else from the sum of all agents', () => {
  const { teller, state } = atWork([{ type: 'usage', usage: USAGE, total: USAGE, cost: 0.5 }]);
  expect([state.usage, state.cost, state.cap]).toEqual([USAGE, 0.5, undefined]);
  teller.tell({ type: 'usage', usage: USAGE, total: USAGE, cost: 0.25 }, { worker: 0 });
  expect(folded(teller.events).cost).toBe(0.75);
  const usage = { ...USAGE, input: 999 };
  teller.tell({ type: 'budget', usage, spent: 2, reserved: 1, cap: { usd: 5 }, cost: 2 });
  const { spent, reserved, cap, cost, usage: total } = folded(teller.events);
  expect({ spent, reserved, cap, cost, total }).toEqual({
    spent: 2,
    reserved: 1,
    cap: { usd: 5 },
    cost: 2,
    total: usage,
  });
});
