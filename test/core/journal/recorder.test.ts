// Events that the journal stores, and those that it syncs.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { Bus } from '@drover/core/bus';
import type { Event, EventType, Recorded } from '@drover/protocol/events';
import { Recorder } from '@drover/core/journal/recorder';
import type { JsonObject } from '@drover/protocol/json';
import { expect, test } from 'vitest';
import { stoppedClock } from '../../support/clock.ts';

const event = (type: EventType): Recorded =>
  ({ v: 1, seq: 1, at: 'now', session: 's', turn: 1, step: 1, type, part: 0, delta: 'text' }) as unknown as Recorded;

type Append = { readonly types: readonly unknown[]; readonly durable: boolean };

function recorder(noteMs = 5): { readonly recorder: Recorder; readonly appends: readonly Append[] } {
  const appends: Append[] = [];
  const append = async (records: readonly JsonObject[], durable: boolean): Promise<void> => {
    appends.push({ types: records.map(({ type }) => type), durable });
  };
  return { recorder: new Recorder({ journal: { append }, noteMs, diagnose: () => undefined }), appends };
}

test.each<EventType>([
  'run_start',
  'plan_ready',
  'plan_proposed',
  'plan_comment',
  'tasks_reopened',
  'run_pause',
  'task_message',
  'task_message_delivered',
  'task_start',
  'task_end',
  'merge_start',
  'merge_end',
  'gate_end',
  'run_end',
  'delivered',
  'session_start',
  'message_end',
  'tool_execution_start',
  'tool_execution_end',
  'permission_decision',
  'awaiting_tool_execution',
  'attempt_discarded',
  'compaction_end',
  'done',
  'incomplete',
  'error',
  'cancelled',
  'session_end',
])('%s is synced, also when it comes alone', async (type) => {
  const { recorder: keeper, appends } = recorder();
  await keeper.append([event(type)]);
  expect(appends).toEqual([{ types: [type], durable: true }]);
});

test.each<EventType>(['message_start', 'text_start', 'text_end', 'usage', 'retry', 'warning', 'compaction_start'])(
  '%s is stored without a sync',
  async (type) => {
    const { recorder: keeper, appends } = recorder();
    await keeper.append([event(type)]);
    expect(appends).toEqual([{ types: [type], durable: false }]);
  },
);

test('a batch is synced if one of its events must be', async () => {
  const { recorder: keeper, appends } = recorder();
  await keeper.append([event('usage'), event('message_end'), event('warning')]);
  expect(appends).toEqual([{ types: ['usage', 'message_end', 'warning'], durable: true }]);
});

test('deltas are noted and never synced', async () => {
  const pass = stoppedClock();
  const { recorder: keeper, appends } = recorder();
  keeper.note(event('text_delta'));
  keeper.note(event('tool_execution_delta'));
  await pass(1_000);
  expect(appends).toEqual([{ types: ['partial'], durable: false }]);
});

test.each<EventType>(['message_end', 'attempt_discarded'])('after %s nothing is left to note', async (type) => {
  const pass = stoppedClock();
  const { recorder: keeper, appends } = recorder();
  keeper.note(event('text_delta'));
  await keeper.append([event(type)]);
  await pass(1_000);
  expect(appends).toEqual([{ types: [type], durable: true }]);
  keeper.note(event('text_delta'));
  await pass(1_000);
  expect(appends.at(-1)).toEqual({ types: ['partial'], durable: false });
});

test('tool events write no partial answer', async () => {
  const { recorder: keeper, appends } = recorder(60_000);
  keeper.note(event('text_delta'));
  await keeper.append([event('tool_execution_start'), event('tool_execution_end')]);
  expect(appends.flatMap(({ types }) => types)).toEqual(['tool_execution_start', 'tool_execution_end']);
  await keeper.append([event('message_end')]); // this stops the clock
});

test('a delta is shown despite a stalled disk, but nothing after a durable event', async () => {
  const kept: Event[] = [];
  const store = { append: () => new Promise<void>(() => undefined), note: (shown: Recorded) => void kept.push(shown) };
  const bus = new Bus({ owner: { session: 's' }, lastSeq: 0, store, pass: (shown) => [shown] });
  const reader = bus.reader();
  bus.emit({ type: 'text_delta', part: 0, delta: 'at once' }, {});
  bus.emit({ type: 'warning', message: 'to be kept' }, {});
  bus.emit({ type: 'text_delta', part: 0, delta: 'later' }, {});
  const shown: Event[] = [];
  const reading = (async () => {
    for await (const one of reader) shown.push(one);
  })();
  for (let turns = 0; turns < 100 || shown.length === 0; turns++) await nextTurn();
  reader.close();
  await reading;
  expect(shown.map((one) => ('delta' in one ? one.delta : one.type))).toEqual(['at once']);
  expect(kept).toHaveLength(1);
});
