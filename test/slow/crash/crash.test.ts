// kill -9 at random moments of a session of 40 steps and 120 calls, and at every occurrence of each named point, with
// many seeds; and the same with a power loss that drops unsynced data.
//
// DROVER_CRASH_SEEDS sets the number of seeds, and DROVER_CRASH_SEEDS_FROM the first one: hundreds take long.

import { expect, test } from 'vitest';
import { liveThroughCrashes, POINTS, type Kill, type Loses } from '../../support/run/crash.ts';
import { randomFrom, type Random } from '../../support/data/histories.ts';

const SEEDS = Number(process.env['DROVER_CRASH_SEEDS'] ?? 50);
const FROM = Number(process.env['DROVER_CRASH_SEEDS_FROM'] ?? 1);
const POWER_SEEDS = Math.ceil(SEEDS / 5);
const POWER_FROM = Math.ceil(FROM / 5);
// Two seconds on an idle machine.
const SEED_MS_MAX = 60_000;
const TOLD_EVERY = 25;

test(
  `${SEEDS} seeds: nothing told is lost, nothing is repeated, nothing is refused`,
  async () => {
    const total = await tollOf(FROM, SEEDS, 'process');
    process.stdout.write(`crash seeds from ${FROM}: ${JSON.stringify(total)}\n`);
    expect(total).toMatchObject({ seeds: SEEDS, lost: 0, doubled: 0, missing: 0, rejections: 0, odd: [] });
    expect(total.processes).toBeGreaterThan(SEEDS);
  },
  SEEDS * SEED_MS_MAX,
);

test(
  `${POWER_SEEDS} power losses: nothing durable is lost or repeated`,
  async () => {
    const total = await tollOf(POWER_FROM, POWER_SEEDS, 'power');
    process.stdout.write(`power seeds from ${POWER_FROM}: ${JSON.stringify(total)}\n`);
    expect(total).toMatchObject({ seeds: POWER_SEEDS, lost: 0, doubled: 0, missing: 0, rejections: 0, odd: [] });
    expect(total.processes).toBeGreaterThan(POWER_SEEDS);
  },
  POWER_SEEDS * SEED_MS_MAX,
);

// Early enough that most sessions can be killed as often as planned: a finished session is not killed any more.
function atPoint(random: Random): Kill {
  const point = random.pick(POINTS);
  return { point, count: point.endsWith('recovery') ? 1 : 1 + random.below(20) };
}

async function tollOf(from: number, seeds: number, loses: Loses) {
  const total = { seeds: 0, processes: 0, lost: 0, doubled: 0, missing: 0, rejections: 0, odd: [] as string[] };
  for (let seed = from; seed < from + seeds; seed++) {
    const random = randomFrom(seed);
    const kills: readonly Kill[] = Array.from({ length: 4 }, () =>
      random.chance(0.5) ? { afterMs: 100 + random.below(500) } : atPoint(random),
    );
    const toll = await liveThroughCrashes(40, kills, loses);
    total.seeds += 1;
    total.processes += toll.processes;
    total.lost += toll.lost.length;
    total.doubled += toll.doubled.length;
    total.missing += toll.missing.length;
    total.rejections += toll.rejections;
    total.odd.push(...toll.odd.map((line) => `seed ${seed}: ${line}`));
    // Long test runs are sometimes cut short, so findings are printed at once.
    if (total.seeds % TOLD_EVERY === 0) process.stdout.write(`so far (${loses}): ${JSON.stringify(total)}\n`);
  }
  return total;
}
