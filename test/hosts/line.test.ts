// Lines and leases, with a clock of the test: what is sent again, what is taken once, and when a lease is over.

import { Lease } from '@drover/hosts/lease';
import { Line, type LineItem } from '@drover/hosts/line/line';
import { expect, test } from 'vitest';

function lineAt(clock: { ms: number }) {
  const sent: LineItem[] = [];
  const heard: unknown[] = [];
  const broken: string[] = [];
  const line = new Line<string, string>(
    { id: 'l', peer: 'p', hear: ({ body }) => heard.push(body), broken: (why) => broken.push(why) },
    { now: () => clock.ms, send: (_, item) => sent.push(item) },
  );
  return { line, sent, heard, broken };
}

const numbersIn = (sent: readonly LineItem[]) => sent.map((item) => (item.t === 'frame' ? item.n : item.t));

test('a line takes each number once and in order', () => {
  const { line, heard } = lineAt({ ms: 0 });
  const acks = [1, 3, 1, 2, 2, 3].map((n) => line.take(n, { body: `frame ${n}` }));
  expect(heard).toEqual(['frame 1', 'frame 2', 'frame 3']);
  expect(acks).toEqual([1, 1, 1, 2, 2, 3]);
});

test('a line sends again what was not acknowledged, after a silence or at once', () => {
  const clock = { ms: 0 };
  const { line, sent } = lineAt(clock);
  for (const body of ['a', 'b', 'c']) line.send(body);
  line.acknowledge(1);
  clock.ms = 2_999;
  line.resend('if silent');
  expect(numbersIn(sent)).toEqual([1, 2, 3]);
  clock.ms = 3_000;
  line.resend('if silent');
  line.resend('now');
  expect(numbersIn(sent)).toEqual([1, 2, 3, 2, 3, 2, 3]);
});

test('a line that waits for too much is broken', () => {
  const { line, broken } = lineAt({ ms: 0 });
  const part = Buffer.alloc(32 * 1024 * 1024);
  line.send('a', part);
  expect(broken).toEqual([]);
  line.send('b', part);
  expect(broken).toEqual(['more than 64 MB wait for the other end']);
});

test('a lease counts from the sending of the last confirmed renewal', () => {
  const clock = { ms: 0 };
  const lease = new Lease(() => clock.ms);
  clock.ms = 2_000;
  const first = lease.renew();
  clock.ms = 4_000;
  const second = lease.renew();
  clock.ms = 14_000; // the answer to the first one was slow
  lease.confirm(first);
  clock.ms = 16_999;
  expect(lease.isOver).toBe(false);
  clock.ms = 17_000;
  expect(lease.isOver).toBe(true);
  lease.confirm(second);
  expect(lease.isOver).toBe(false);
});
