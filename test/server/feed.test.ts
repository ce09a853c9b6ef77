// Events of a journal that this process starts to write while a client listens: in order, none left out.

import { appendFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Bus, type Store } from '@drover/core/bus';
import { EVENTS, type Event, type Recorded } from '@drover/protocol/events';
import { DeltaLog } from '@drover/server/streams/delta-log';
import { Feed } from '@drover/server/streams/feed';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/agent.ts';
import { eventsOf } from '../support/serve/serve-desk.ts';

const lineOf = (record: object): string => `${JSON.stringify(record)}\n`;

/** A disk that is faster than every reader. */
function quickStore(path: string): Store {
  return {
    append: async (events: readonly Recorded[]) => {
      for (const event of events) if (EVENTS[event.type].delivery !== 'lossy') appendFileSync(path, lineOf(event));
    },
    note: () => undefined,
  };
}

test('deltas are told before later events, however fast those are durable', async () => {
  const path = join(await temporaryFolder(), 'journal.jsonl');
  await writeFile(path, lineOf({ v: 1, seq: 1, type: 'session_start', model: 'a/b', cwd: '/' }));
  const options = { streamBytesMax: 1e6, commentMs: 1e6, lastType: 'text_end' };
  const feed = new Feed({ path, ...options, diagnose: () => undefined, onIdle: () => undefined });
  const stream = feed.replay(0);
  const bus = new Bus({
    owner: { session: 's' },
    lastSeq: 1,
    store: quickStore(path),
    pass: (event) => [event],
  });
  feed.follow(bus);
  bus.emit({ type: 'text_delta', part: 0, delta: 'Hel' }, {});
  bus.emit({ type: 'text_delta', part: 0, delta: 'lo' }, {});
  bus.emit({ type: 'text_end', part: 0, text: 'Hello' }, {});
  const told = await new Response(stream.body).text();
  expect(told.match(/^event: .*$/gm)).toEqual([
    'event: session_start',
    'event: text_delta',
    'event: text_delta',
    'event: text_end',
  ]);
});

test('progress names the last told event and the open text after it', async () => {
  const path = join(await temporaryFolder(), 'journal.jsonl');
  await writeFile(path, '');
  const options = { streamBytesMax: 1e6, commentMs: 1e6, lastType: 'text_end' };
  const feed = new Feed({ path, ...options, diagnose: () => undefined, onIdle: () => undefined });
  const bus = new Bus({ owner: { session: 's' }, lastSeq: 0, store: quickStore(path), pass: (event) => [event] });
  feed.follow(bus);
  const stream = feed.replay(0);
  bus.emit({ type: 'text_start', part: 0 }, { worker: 0 });
  bus.emit({ type: 'text_delta', part: 0, delta: 'Hel' }, { worker: 0 });
  bus.emit({ type: 'text_delta', part: 0, delta: 'lo' }, { worker: 0 });
  for await (const { id } of eventsOf(new Response(stream.body))) if (id === 3) break;
  expect(feed.progress(0)).toEqual({ seq: 3, open: [{ part: 0, type: 'text', text: 'Hello' }] });
  bus.close();
  feed.unfollow(bus);
});

test('a feed without a bus is idle once its last reader has left', async () => {
  const path = join(await temporaryFolder(), 'journal.jsonl');
  await writeFile(path, lineOf({ v: 1, seq: 1, type: 'session_start', model: 'a/b', cwd: '/' }));
  let idle = 0;
  const options = { streamBytesMax: 1e6, commentMs: 1e6, diagnose: () => undefined };
  const feed = new Feed({ path, ...options, onIdle: () => (idle += 1) });
  const [first, second] = [feed.replay(0), feed.replay(0)];
  first.leave();
  expect([feed.size, idle]).toEqual([1, 0]);
  second.leave();
  expect([feed.size, idle]).toEqual([0, 1]);
});

test('the log of deltas keeps recent answers, and evicts older ones when it is full', () => {
  const log = new DeltaLog(10);
  const ANSWERS = 20;
  for (let answer = 0; answer < ANSWERS; answer++) {
    const events: readonly Event[] = [
      { type: 'text_start', part: 0 },
      { type: 'text_delta', part: 0, delta: 'a' },
      { type: 'text_delta', part: 0, delta: 'b' },
      { type: 'text_end', part: 0, text: 'ab' },
      { type: 'message_end', message: { role: 'user', content: [] } },
    ];
    events.forEach((event, at) =>
      log.take({ v: 1, session: 's', at: '', seq: answer * events.length + at + 1, worker: 0, ...event }),
    );
  }
  const kept = Array.from({ length: ANSWERS }, (_, answer) => log.hasEnding(answer * 5 + 4));
  expect([kept[0], kept.at(-1), kept.filter(Boolean).length <= 10]).toEqual([false, true, true]);
});
