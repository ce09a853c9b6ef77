// Power loss at every named point, also during recovery from the previous one.

import { expect, test } from 'vitest';
import { liveThroughCrashes, POINTS } from '../support/run/crash.ts';
import { proves } from '../support/proves.ts';

const UNHARMED = { lost: [], doubled: [], missing: [], rejections: 0, odd: [] };

proves(
  'journal.kill-anywhere',
  'a session killed at each named point finishes without loss or duplicates',
  async () => {
    const kills = POINTS.map((point, n) => ({ point, count: point.endsWith('recovery') ? 1 : 2 + (n % 3) }));
    const { processes, ...toll } = await liveThroughCrashes(8, kills);
    expect(toll).toEqual(UNHARMED);
    expect(processes).toBe(POINTS.length + 1);
  },
  120_000,
);

test('a session killed during recovery, twice, still finishes', async () => {
  const kills = [
    { point: 'after-effect', count: 2 } as const,
    ...(['before-recovery', 'after-recovery', 'torn-write', 'before-recovery'] as const).map((point) => ({
      point,
      count: 1,
    })),
  ];
  const { processes, ...toll } = await liveThroughCrashes(3, kills);
  expect(toll).toEqual(UNHARMED);
  expect(processes).toBe(6);
}, 60_000);

test('after a power loss nothing told as durable is lost', async () => {
  const points = [
    'after-write',
    'before-sync',
    'before-effect',
    'after-effect',
    'before-request',
    'answer-whole',
  ] as const;
  const kills = points.map((point, n) => ({ point, count: 2 + (n % 3) }));
  const { processes, ...toll } = await liveThroughCrashes(5, kills, 'power');
  expect(toll).toEqual(UNHARMED);
  expect(processes).toBe(kills.length + 1);
}, 60_000);
