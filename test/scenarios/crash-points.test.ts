// The plug is pulled at every named point, also while recovering from the time before.

import { expect, test } from 'vitest';
import { liveThroughCrashes, POINTS } from '../support/run/crash.ts';
import { proves } from '../support/proves.ts';

const UNHARMED = { lost: [], doubled: [], missing: [], rejections: 0, odd: [] };

proves(
  'journal.kill-anywhere',
  'killed at each named point in turn, a session is finished with nothing lost and nothing doubled',
  async () => {
    const kills = POINTS.map((point, n) => ({ point, count: point.endsWith('recovery') ? 1 : 2 + (n % 3) }));
    const { processes, ...toll } = await liveThroughCrashes(8, kills);
    expect(toll).toEqual(UNHARMED);
    expect(processes).toBe(POINTS.length + 1);
  },
  120_000,
);

test('killed while recovering, and again, it is finished all the same', async () => {
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

test('without power, too: what was not synced was not told as lasting, and nothing had come of it', async () => {
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
