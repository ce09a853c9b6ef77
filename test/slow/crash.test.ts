// kill -9 at random moments of a session of 40 steps and 120 calls, with many seeds; and at each named
// point, at every count that comes up.

import { expect, test } from 'vitest';
import { liveThroughCrashes, POINTS, type Kill } from '../support/crash.ts';
import { randomFrom } from '../support/histories.ts';

const SEEDS = Number(process.env['DROVER_CRASH_SEEDS'] ?? 50);

test(`${SEEDS} seeds: nothing told is lost, nothing is done twice, nothing is refused`, async () => {
  const total = { seeds: 0, processes: 0, lost: 0, doubled: 0, missing: 0, rejections: 0, odd: [] as string[] };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = randomFrom(seed);
    const kills: readonly Kill[] = Array.from({ length: 4 }, () =>
      random.chance(0.5)
        ? { afterMs: 250 + random.below(900) }
        : { point: random.pick(POINTS), count: 1 + random.below(60) },
    );
    const toll = await liveThroughCrashes(40, kills);
    total.seeds += 1;
    total.processes += toll.processes;
    total.lost += toll.lost.length;
    total.doubled += toll.doubled.length;
    total.missing += toll.missing.length;
    total.rejections += toll.rejections;
    total.odd.push(...toll.odd.map((line) => `seed ${seed}: ${line}`));
  }
  process.stdout.write(`crash seeds: ${JSON.stringify(total)}\n`);
  expect(total).toMatchObject({ seeds: SEEDS, lost: 0, doubled: 0, missing: 0, rejections: 0, odd: [] });
  expect(total.processes).toBeGreaterThan(SEEDS);
});
