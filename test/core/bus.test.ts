// The bus: every reader gets its events, and none delays another.

import { Bus, ReaderLost, type Reader, type Shown } from '@drover/core/bus';
import type { Event } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { proves } from '../support/proves.ts';

const open = () => new Bus({ owner: { session: 'ses_1' }, lastSeq: 0, pass: (event) => [event] });
const delta = (text: string): Event => ({ type: 'text_delta', part: 0, delta: text });
const warning = (message: string): Event => ({ type: 'warning', message });

async function all(reader: Reader): Promise<Shown[]> {
  const events: Shown[] = [];
  for await (const event of reader) events.push(event);
  return events;
}

test('events are stamped once with consecutive numbers, and two readers get the same', async () => {
  const bus = open();
  const readers = [bus.reader(), bus.reader()];
  for (let n = 0; n < 100; n++) bus.emit(n % 2 ? delta(`${n}`) : warning(`${n}`), { worker: 0, turn: 1, step: n });
  bus.close();
  const [first, second] = await Promise.all(readers.map(all));
  expect(first).toEqual(second);
  expect(first?.map(({ seq }) => seq)).toEqual(Array.from({ length: 100 }, (_, n) => n + 1));
  expect(first?.[3]).toEqual({
    v: 1,
    seq: 4,
    at: first?.[3]?.at,
    session: 'ses_1',
    worker: 0,
    turn: 1,
    step: 3,
    type: 'text_delta',
    part: 0,
    delta: '3',
  });
});

test('interleaved deltas of several blocks and agents name their source', async () => {
  const bus = open();
  const reader = bus.reader();
  const usual = {
    worker: 1,
    task: 'a',
    attempt: 1,
    turn: 1,
    step: 1,
    type: 'text_delta',
    part: 0,
    delta: 'x',
  } as const;
  const other = { worker: 2, task: 'b', attempt: 2, turn: 2, step: 2, type: 'thinking_delta', part: 1 } as const;
  // Each case differs from the previous one in one property.
  const told = Object.entries(other).flatMap(([key, value]) => [usual, usual, { ...usual, [key]: value }]);
  for (const { worker, task, attempt, turn, step, ...event } of told)
    bus.emit(event, { worker, task, attempt, turn, step });
  bus.close();
  const got = await all(reader);
  expect(got.map(({ v: _v, seq: _seq, at: _at, session: _session, ...rest }) => rest)).toEqual(told);
});

test('later events have later times', async () => {
  const bus = open();
  const reader = bus.reader();
  bus.emit(delta('a'), {});
  const begun = Date.now();
  while (Date.now() === begun) await new Promise((resolve) => setImmediate(resolve));
  bus.emit(delta('b'), {});
  bus.close();
  const [first, second] = (await all(reader)).map(({ at }) => Date.parse(at));
  expect((second ?? 0) - (first ?? 0)).toBeGreaterThan(0);
});

proves('bus.nobody-waits', 'a reader that never reads delays no other, and the other gets every event', async () => {
  const bus = open();
  const stuck = bus.reader();
  const good = bus.reader();
  const reading = all(good);
  const heapBefore = process.memoryUsage().heapUsed;
  let longestTick = 0;
  let last = performance.now();
  for (let n = 0; n < 10_000; n++) {
    bus.emit(n % 10 === 0 ? warning(`reliable ${n}`) : delta('some words '.repeat(20)), { step: 1 });
    if (n % 100 !== 99) continue;
    await new Promise((resolve) => setImmediate(resolve));
    longestTick = Math.max(longestTick, performance.now() - last);
    last = performance.now();
  }
  bus.close();
  const got = await reading;
  expect(got.filter(({ type }) => type === 'warning')).toHaveLength(1_000);
  expect(longestTick).toBeLessThan(1_000);
  expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(64 * 1024 * 1024);
  expect((await all(stuck)).filter(({ type }) => type === 'warning')).toHaveLength(1_000);
});

test('a burst is delivered in pieces', async () => {
  const bus = open();
  const reader = bus.reader();
  const words = Array.from({ length: 20_000 }, (_, n) => `${n} `);
  for (const word of words) bus.emit(delta(word), { step: 1 });
  bus.close();
  expect((await all(reader)).map((event) => ('delta' in event ? event.delta : ''))).toEqual(words);
});

test('a lagging reader gets joined deltas, and loses no text before its bound', async () => {
  const bus = open();
  const slow = bus.reader();
  const words = Array.from({ length: 40_000 }, (_, n) => `word${n} `.repeat(5));
  for (const word of words) bus.emit(delta(word), { step: 1 });
  bus.close();
  const got = await all(slow);
  expect(got.map((event) => ('delta' in event ? event.delta : '')).join('')).toBe(words.join(''));
  expect(got.length).toBeLessThan(words.length);
  // Reconnecting with the last number misses nothing and repeats nothing.
  expect(got.at(-1)?.seq).toBe(words.length);
});

test('past its bound a reader loses only deltas, and is told so', async () => {
  const bus = open();
  const slow = bus.reader(100_000);
  for (let n = 0; n < 500; n++) bus.emit(delta('x'.repeat(1_000)), { step: 1 });
  bus.emit(warning('after'), {});
  bus.close();
  const got = await all(slow);
  expect(got.length).toBeLessThan(100);
  expect(got.at(-1)).toMatchObject({ type: 'warning', message: 'after', gap: true, seq: 501 });
});

test('a reader that can’t hold reliable events is cut off, and told so', async () => {
  const bus = open();
  const slow = bus.reader(100_000);
  const other = bus.reader();
  for (let n = 0; n < 500; n++) bus.emit(warning('x'.repeat(1_000)), {});
  bus.close();
  await expect(all(slow)).rejects.toThrow(ReaderLost);
  expect(await all(other)).toHaveLength(500);
});

test('a reader that keeps up may read many times its bound', async () => {
  const bus = open();
  const reader = bus.reader(100_000)[Symbol.asyncIterator]();
  for (let n = 0; n < 500; n++) {
    bus.emit(warning('x'.repeat(1_000)), {});
    expect((await reader.next()).value).toMatchObject({ seq: n + 1 });
  }
  bus.close();
  expect((await reader.next()).done).toBe(true);
});

test('a reader that stops reading leaves, and the others continue', async () => {
  const bus = open();
  const [early, late] = [bus.reader(), bus.reader()];
  bus.emit(warning('one'), {});
  bus.emit(warning('two'), {});
  for await (const event of early) {
    expect(event).toMatchObject({ message: 'one' });
    break;
  }
  bus.emit(warning('three'), {});
  bus.close();
  expect((await all(late)).map((event) => ('message' in event ? event.message : ''))).toEqual(['one', 'two', 'three']);
});
