// The work that a resumed run retries, by its journal: tasks, and the coordinator's open call.

import { canRunResume, runStateOfRecords } from '@drover/coordinator/run/runs';
import {
  foldRunHistory,
  readAgentHistoryOfRun,
  readRunHistory,
  type RunHistory,
} from '@drover/coordinator/run/history';
import { taskRowsOfState } from '@drover/coordinator/view/state';
import {
  isAttemptKeptInLedger,
  isPassingTaskFailure,
  NEW_TASK,
  TaskLedger,
  type TaskEntry,
  type TaskStep,
} from '@drover/coordinator/run/tasks';
import type { Event, Place } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { JsonObject } from '@drover/protocol/json';
import type { Message } from '@drover/protocol/messages';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import type { PlannedTask } from '@drover/protocol/plan';
import type { TaskStatus } from '@drover/protocol/run';
import { expect, test } from 'vitest';
import { label, sampleSettings, Teller } from '../support/run/sample-run.ts';

const LOST: Failure = { kind: 'worker.lost', message: 'gone' };
const REFUSED: Failure = { kind: 'answer.refused', message: 'no' };
const SEED = { seeding: 'full', messages: 2, tokens: 9, digest: 'd' } as const;
const COORDINATOR = { worker: 0, turn: 1, step: 1 };

const planned = (id: string, ...dependsOn: readonly string[]): PlannedTask => ({
  id,
  title: id,
  prompt: id,
  dependsOn,
  files: [],
  mode: 'write',
});

/** Feeds a history with events as a journal would store them. */
class Story extends Teller {
  begin(resumed = false): this {
    return this.say({ type: 'run_start', resumed, ...sampleSettings });
  }

  say(event: Event, place: Place = {}): this {
    this.tell(event, place);
    return this;
  }

  /** The coordinator is asked, and submits a plan. */
  plan(call: string, ...tasks: readonly PlannedTask[]): this {
    const message = {
      role: 'assistant',
      stop: 'tool_calls',
      usage: NO_USAGE,
      content: [{ type: 'tool_call', id: call, name: 'submit_plan', args: {} }],
    } as Message;
    const asked: Message = { role: 'user', content: [{ type: 'text', text: 'The goal' }] };
    if (this.events.length === 1) {
      this.say({ type: 'session_start', model: 'rehearsal/any', cwd: '/sample' }, { worker: 0 });
      this.say({ type: 'message_end', message: asked }, { worker: 0, turn: 1 });
    }
    return this.say({ type: 'message_end', message }, COORDINATOR)
      .say({ type: 'tool_execution_start', args: {}, ...this.#label(call) }, COORDINATOR)
      .say({ type: 'plan_ready', tasks, round: 1, by: 'coordinator', callId: call }, COORDINATOR);
  }

  task(id: string, failure: Failure | undefined): this {
    const place = { worker: 1, task: id, attempt: 1 };
    this.say({ type: 'task_start', base: 'base0000', workspace: '/ws/1', seed: SEED }, place);
    const rest = { again: false, files: [], usage: NO_USAGE };
    if (failure === undefined) return this.say({ type: 'task_end', status: 'finished', ...rest }, place);
    return this.say({ type: 'task_end', status: 'failed', failure, ...rest }, place);
  }

  skip(id: string): this {
    const rest = { again: false, files: [], usage: NO_USAGE };
    return this.say({ type: 'task_end', status: 'skipped', ...rest }, { task: id });
  }

  /** The coordinator gets the result of its plan, and answers. */
  hear(call: string, output: string, answer: string): this {
    const results = [{ id: call, name: 'submit_plan', output, isError: false }];
    const content = [{ type: 'text' as const, text: answer }];
    const message = { role: 'assistant' as const, content, stop: 'stop' as const, usage: NO_USAGE };
    return this.say(
      { type: 'tool_execution_end', output, outputSummary: output, isError: false, ...this.#label(call) },
      COORDINATOR,
    )
      .say({ type: 'message_end', message: { role: 'tool', results } }, COORDINATOR)
      .say({ type: 'message_end', message }, COORDINATOR)
      .say({ type: 'done', message }, COORDINATOR);
  }

  #label(call: string) {
    return { ...label(0, 'submit_plan: all'), callId: call, toolUseId: call };
  }

  get past() {
    const past = readRunHistory(this.events as unknown as readonly JsonObject[]);
    if (past === undefined) throw new Error('it has not begun');
    return past;
  }

  /** Task → its final status; absent while it is open. */
  get standing() {
    return Object.fromEntries(this.past.ledger.statuses());
  }

  /** The roles of the coordinator's messages, and whether its call is open. */
  get coordinator() {
    const { messages = [], open, ending } = this.past.coordinator ?? {};
    return { roles: messages.map(({ role }) => role), begun: [...(open?.begun.values() ?? [])].length, ending };
  }
}

const CLOSED = { roles: ['user', 'assistant', 'tool', 'assistant'], begun: 0, ending: 'done' };
const OPEN = { roles: ['user', 'assistant'], begun: 1, ending: undefined };

test('tasks that failed for outside reasons reopen, with dependents and their call', () => {
  const story = new Story()
    .begin()
    .plan('c1', planned('a'), planned('b', 'a'), planned('c', 'b'), planned('d'))
    .task('a', LOST)
    .skip('b')
    .skip('c')
    .task('d', undefined)
    .hear('c1', 'a is lost', 'So be it.');
  expect(story.standing).toEqual({ a: undefined, b: undefined, c: undefined, d: 'done' });
  expect(story.coordinator).toEqual(OPEN);
});

test('permanent failures stay with their dependents, and the coordinator knows them', () => {
  const story = new Story()
    .begin()
    .plan('c1', planned('a'), planned('b', 'a'), planned('c', 'b'))
    .task('a', REFUSED)
    .skip('b')
    .skip('c')
    .hear('c1', 'a failed', 'So be it.');
  expect(story.standing).toEqual({ a: 'failed', b: 'skipped', c: 'skipped' });
  expect(story.coordinator).toEqual(CLOSED);
});

test('a task that depends on both stays with the permanent failure', () => {
  const story = new Story()
    .begin()
    .plan('c1', planned('a'), planned('b'), planned('c', 'a', 'b'))
    .task('a', LOST)
    .task('b', REFUSED)
    .skip('c')
    .hear('c1', 'oh', 'So be it.');
  expect(story.standing).toEqual({ a: undefined, b: 'failed', c: 'skipped' });
  expect(story.coordinator).toEqual(OPEN);
});

test('a run resumed before has one history: the last one the coordinator saw', () => {
  const story = new Story()
    .begin()
    .plan('c1', planned('a'))
    .task('a', LOST)
    .hear('c1', 'a is lost', 'So be it.')
    .begin(true)
    .task('a', undefined)
    .hear('c1', 'a is done', 'Good.');
  expect(story.coordinator).toEqual(CLOSED);
  expect(JSON.stringify(story.past.coordinator?.messages)).toContain('a is done');
  expect(JSON.stringify(story.past.coordinator?.messages)).not.toContain('a is lost');
});

test('tokens of a dropped history still count', () => {
  const usage = { ...NO_USAGE, input: 7 };
  const story = new Story().begin().plan('c1', planned('a')).task('a', LOST).hear('c1', 'lost', 'So be it.');
  story.say({ type: 'usage', usage, total: usage }, COORDINATOR);
  expect([story.past.spent.total.usage.input, story.past.coordinator?.usage.input]).toEqual([7, 7]);
});

test('a task that a later plan names again is open, even before it starts', () => {
  const story = new Story().begin().plan('c1', planned('a'), planned('b')).task('a', REFUSED).task('b', undefined);
  story.hear('c1', 'a failed', 'Again.').plan('c2', planned('a'));
  expect(story.standing).toEqual({ a: undefined, b: 'done' });
  expect(story.past.ledger.task('a')).toEqual({ ...NEW_TASK, attempts: 1, started: 1 });
});

test('only the last plan is resumed', () => {
  const story = new Story().begin().plan('c1', planned('a')).task('a', LOST).hear('c1', 'a is lost', 'Otherwise.');
  story.plan('c2', planned('b')).task('b', undefined).hear('c2', 'b is done', 'Good.');
  expect(story.standing).toEqual({ a: 'failed', b: 'done' });
});

test('changed settings are kept, and the first start time stays', () => {
  const story = new Story().begin();
  story.say({ type: 'run_start', resumed: true, ...sampleSettings, workers: 9, cap: { usd: 10 } });
  expect(story.past.settings).toMatchObject({ workers: 9, cap: { usd: 10 } });
  expect(story.past.startedAt).toBe(story.events[0]?.at);
});

test.each<[boolean, Event & { readonly type: 'run_end' }]>([
  [false, { type: 'run_end', outcome: 'done', exitCode: 0, tasks: [], usage: NO_USAGE }],
  [false, { type: 'run_end', outcome: 'incomplete', exitCode: 3, tasks: [], usage: NO_USAGE }],
  [true, { type: 'run_end', outcome: 'cancelled', exitCode: 130, tasks: [], usage: NO_USAGE }],
  [true, { type: 'run_end', outcome: 'error', exitCode: 9, failure: LOST, tasks: [], usage: NO_USAGE }],
  [true, { type: 'run_end', outcome: 'incomplete', exitCode: 8, failure: LOST, tasks: [], usage: NO_USAGE }],
])('resumable is %s after %j', (expected, end) => {
  const story = new Story().begin().plan('c1', planned('a'), planned('b')).task('a', REFUSED).task('b', undefined);
  expect(canRunResume(runStateOfRecords(story.events as unknown as readonly JsonObject[]))).toBe(true);
  story.say(end);
  expect(canRunResume(runStateOfRecords(story.events as unknown as readonly JsonObject[]))).toBe(expected);
});

test('limits belong to the task, except the budget', () => {
  const limits = ['steps', 'output-tokens', 'budget', 'time', 'idle'] as const;
  const passing = limits.filter((limit) => isPassingTaskFailure({ kind: 'limit.reached', limit, message: '' }));
  expect(passing).toEqual(['budget']);
});

test('resume knows every setting of the run', () => {
  const settings = { ...sampleSettings, setup: ['make ready'], timeoutMs: 5_000 };
  const story = new Story().say({ type: 'run_start', resumed: false, ...settings });
  expect(readRunHistory(story.events as unknown as readonly JsonObject[])?.settings).toEqual(settings);
});

const WORKING: TaskStep = { at: 'attempting', attempt: 1, base: 'b' };
const over = (status: TaskStatus): Partial<TaskEntry> => ({ step: { at: 'over', status, from: WORKING } });

test.each<[string, boolean, Partial<TaskEntry>]>([
  ['was not begun', true, { started: 0 }],
  ['was to be tried again, and was not', true, { started: 0, retry: { reason: 'lost' } }],
  ['failed, and is to be tried again', true, { failure: LOST }],
  [
    'could not be committed, and is to be tried again',
    false,
    { failure: { kind: 'git.failed', args: [], message: '' } },
  ],
  ['is at work', false, { step: WORKING }],
  ['has landed', true, over('landed')],
  ['waits to land', true, { step: { at: 'landing', commit: 'c', summary: '' } }],
  ['is at work again', false, { started: 2, step: { ...WORKING, attempt: 2 } }],
  ['was cancelled before another plan named it', false, { interrupted: 1 }],
  ['was stopped by a gate', true, over('gate_failed')],
  ['failed, with what it left on a branch', true, { ...over('failed'), failure: REFUSED }],
  ['could not be committed', false, { ...over('failed'), failure: { kind: 'git.failed', args: ['add'], message: '' } }],
  ['lost its workspace', false, { ...over('failed'), failure: { kind: 'workspace.failed', message: '' } }],
  ['could not be stored', false, { ...over('failed'), failure: { kind: 'store.failed', message: '' } }],
])('the work of a task that %s is stored outside its workspace: %s', (_, kept, task) => {
  expect(isAttemptKeptInLedger({ ...NEW_TASK, attempts: 1, started: 1, ...task }, 1)).toBe(kept);
});

test.each<[string, Failure, boolean]>([
  ['was lost', LOST, true],
  ['could not be committed', { kind: 'git.failed', args: ['add'], message: 'no space left' }, false],
])('where an attempt %s, resume knows if its workspace holds the only copy', (_, failure, kept) => {
  const place = { worker: 1, task: 'a', attempt: 1 };
  const ended = { type: 'task_end', status: 'failed', files: [], usage: NO_USAGE, failure } as const;
  for (const again of [true, false]) {
    const story = new Story().begin().plan('c1', planned('a'));
    story.say({ type: 'task_start', base: 'b', workspace: '/ws/1', seed: SEED }, place).say({ ...ended, again }, place);
    const { ledger } = story.past;
    expect([again, ledger.status('a'), isAttemptKeptInLedger(ledger.task('a'), 1)]).toEqual([again, undefined, kept]);
  }
});

test('a resumed attempt has its own messages, and none of the previous attempt', () => {
  const story = new Story().begin().plan('p1', planned('a'));
  for (const attempt of [1, 2]) {
    const place = { worker: 1, task: 'a', attempt };
    const message: Message = { role: 'user', content: [{ type: 'text', text: `attempt ${attempt}` }] };
    story.say({ type: 'session_start', model: 'rehearsal/any', cwd: '/ws/1' }, place);
    story.say({ type: 'message_end', message }, { ...place, turn: 1 });
  }
  const past = readRunHistory(story.events as unknown as readonly JsonObject[]);
  const whose = { task: 'a', attempt: 2 };
  const found = [past?.attempt(whose, []), readAgentHistoryOfRun(past?.records ?? [], whose, [])];
  const told: Message = { role: 'user', content: [{ type: 'text', text: 'attempt 2' }] };
  expect(found.map((own) => own?.messages)).toEqual([[told], [told]]);
});

const FAILED = { type: 'task_end', status: 'failed', files: [], usage: NO_USAGE, failure: LOST } as const;
const CANCELLED = { type: 'task_end', status: 'cancelled', again: false, files: [], usage: NO_USAGE } as const;
const START = { type: 'task_start', base: 'b', workspace: '/ws/1', seed: SEED } as const;

test('an attempt that ended before its start uses up its number', () => {
  const story = new Story().begin().plan('c1', planned('a'));
  story.say({ ...FAILED, again: true }, { worker: 1, task: 'a', attempt: 1 });
  const { attempts, started, failures } = story.past.ledger.task('a');
  expect({ attempts, started, failures }).toEqual({ attempts: 1, started: 0, failures: 1 });
});

test('a cancelled attempt resumes under its number, and starts anew in a later plan', () => {
  const place = { worker: 1, task: 'a', attempt: 1 };
  const story = new Story().begin().plan('c1', planned('a')).say(START, place).say(CANCELLED, place);
  expect(story.past.ledger.task('a').step).toEqual({ at: 'attempting', attempt: 1, base: 'b' });
  story.plan('c2', planned('a'));
  expect(story.past.ledger.task('a')).toEqual({ ...NEW_TASK, attempts: 1, started: 1, interrupted: 1 });
});

test('a failure after a conflict keeps the base of the conflict', () => {
  const story = new Story().begin().plan('c1', planned('a'));
  const place = { worker: 1, task: 'a', attempt: 1 };
  story.say(START, place).say({ ...CANCELLED, status: 'finished', commit: 'c' }, place);
  story.say({ type: 'merge_end', outcome: 'conflict', again: true, onto: 'head' }, { task: 'a' });
  const retried = { ...place, attempt: 2 };
  story.say({ ...START, base: 'head' }, retried).say({ ...FAILED, again: true }, retried);
  const { onto, retry, conflicts, failures } = story.past.ledger.task('a');
  expect({ onto, conflicts, failures }).toEqual({ onto: 'head', conflicts: 1, failures: 1 });
  expect(retry?.reason).toContain('The one before failed');
});

test('a history read between two processes continues with later records', () => {
  const story = new Story()
    .begin()
    .plan('c1', planned('a'), planned('b', 'a'), planned('c'))
    .task('a', LOST)
    .skip('b')
    .task('c', REFUSED)
    .hear('c1', 'all is lost', 'So be it.')
    .begin(true)
    .task('a', LOST)
    .say({ type: 'tasks_reopened', tasks: [planned('c')] });
  const records = story.events as unknown as readonly JsonObject[];
  const whole = factsOf(story.past);
  // A command reads the journal between two processes of the run: before a later start, and before its own records.
  const starts = ['run_start', 'tasks_reopened'];
  const between = story.events.flatMap(({ type }, at) => (starts.includes(type) ? [at] : []));
  expect(between).toHaveLength(3);
  for (const at of between) {
    const history = foldRunHistory(records.slice(0, at));
    history.takeAll(records.slice(at));
    history.resume();
    expect(factsOf(history), `from record ${at}`).toEqual(whole);
  }
});

/** Everything that a resumed run takes from its history. */
function factsOf(past: RunHistory) {
  const { ledger, coordinator, gates, spent, activeMs, lastSeq, settings, isOver, hasEnded } = past;
  const attempt = past.attempt({ task: 'a', attempt: 1 }, []);
  const kept = { gates: [...gates], spent, activeMs, lastSeq, settings, isOver, hasEnded, attempt };
  return { ...kept, coordinator, tasks: [...ledger.tasks], plan: ledger.plan, rows: taskRowsOfState(past.state) };
}

test('a ledger fed event by event equals the ledger of the journal', () => {
  const story = new Story().begin().plan('c1', planned('a'), planned('b', 'a')).task('a', LOST).skip('b').begin(true);
  const ledger = new TaskLedger();
  for (const event of story.events) ledger.take(event, event);
  expect([...ledger.tasks]).toEqual([...story.past.ledger.tasks]);
  expect(ledger.openTasks()).toEqual(['a', 'b']);
});
