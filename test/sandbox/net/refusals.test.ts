// Refused connections are coalesced per host before they become events.

import type { NetworkEvent } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { coalesceSandboxRefusals } from '../../../bin/sandbox/refusals.ts';

const refused = (host: string): NetworkEvent => ({ type: 'network', host, port: 443, allowed: false, reason: 'no' });

function coalesced(events: readonly NetworkEvent[]): {
  readonly before: NetworkEvent[];
  readonly after: NetworkEvent[];
} {
  const told: NetworkEvent[] = [];
  const refusals = coalesceSandboxRefusals((event) => told.push(event));
  for (const event of events) refusals.take(event);
  const before = [...told];
  refusals.flush();
  return { before, after: told.slice(before.length) };
}

const sum = (events: readonly NetworkEvent[]) => events.reduce((all, { times = 1 }) => all + times, 0);

test('the first refusal of a host is told at once, and later ones as counts', () => {
  const { before, after } = coalesced(Array.from({ length: 593 }, () => refused('a.example.com')));
  expect(before.slice(0, 3)).toEqual([
    refused('a.example.com'),
    refused('a.example.com'),
    { ...refused('a.example.com'), times: 2 },
  ]);
  expect(before.length + after.length).toBe(11);
  expect(sum([...before, ...after])).toBe(593);
});

test('nothing is told twice by a second flush', () => {
  const told: NetworkEvent[] = [];
  const refusals = coalesceSandboxRefusals((event) => told.push(event));
  for (let at = 0; at < 3; at++) refusals.take(refused('a.example.com'));
  refusals.flush();
  refusals.flush();
  expect(sum(told)).toBe(3);
});

test('allowed connections are all told', () => {
  const allowed: NetworkEvent = { type: 'network', host: 'b.example.com', port: 443, allowed: true };
  expect(coalesced([allowed, allowed, allowed])).toEqual({ before: [allowed, allowed, allowed], after: [] });
});

test('of 5,000 hosts 100 are named, and the others are counted together', () => {
  const { before, after } = coalesced(Array.from({ length: 5_000 }, (_, at) => refused(`h${at}.example.com`)));
  const all = [...before, ...after];
  expect(new Set(all.map(({ host }) => host)).size).toBe(101);
  expect(all.length).toBeLessThan(120);
  expect(sum(all)).toBe(5_000);
  expect(all.at(-1)).toMatchObject({ host: 'other-hosts', reason: 'more than 100 hosts were refused' });
});
