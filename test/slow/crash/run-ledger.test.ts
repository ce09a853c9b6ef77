// kill -9 at random moments of a run: four workers, 40 steps, 120 commands that each write to an outside ledger.
// DROVER_CRASH_SEEDS sets the number of seeds, and DROVER_CRASH_SEEDS_FROM the first one.

import { expect, test } from 'vitest';
import { randomFrom } from '../../support/data/histories.ts';
import { runThroughCrashes, type Kill } from '../../support/run/run-ledger.ts';

const SEEDS = Number(process.env['DROVER_CRASH_SEEDS'] ?? 50);
const FROM = Number(process.env['DROVER_CRASH_SEEDS_FROM'] ?? 1);
const SEED_MS_MAX = 120_000;
const STEPS = 10; // per worker
const EVENTS = 900; // about the number of events of such a run

test(
  `${SEEDS} seeds of a run: nothing is lost or repeated, and the result is the same`,
  async () => {
    const whole = await runThroughCrashes(STEPS, []);
    const unharmed = { lost: [], doubled: [], missing: [], rejections: 0, code: 0, tree: whole.tree };
    expect(whole).toEqual({ ...unharmed, processes: 1, uncertain: 0 });
    const counts = { seeds: 0, processes: 0, uncertain: 0, lost: 0, doubled: 0, missing: 0, rejections: 0 };
    const total = { ...counts, odd: [] as string[] };
    for (let seed = FROM; seed < FROM + SEEDS; seed++) {
      const random = randomFrom(seed);
      const kills: readonly Kill[] = Array.from({ length: 3 }, () => ({
        events: 1 + random.below(EVENTS / 2),
        afterMs: random.below(40),
      }));
      const { processes, uncertain, ...toll } = await runThroughCrashes(STEPS, kills);
      total.seeds += 1;
      total.processes += processes;
      total.uncertain += uncertain;
      total.lost += toll.lost.length;
      total.doubled += toll.doubled.length;
      total.missing += toll.missing.length;
      total.rejections += toll.rejections;
      if (JSON.stringify(toll) !== JSON.stringify(unharmed)) total.odd.push(`seed ${seed}: ${JSON.stringify(toll)}`);
      if (total.seeds % 10 === 0) process.stdout.write(`so far: ${JSON.stringify(total)}\n`);
    }
    process.stdout.write(`run seeds from ${FROM}: ${JSON.stringify(total)}\n`);
    expect(total).toMatchObject({ seeds: SEEDS, lost: 0, doubled: 0, missing: 0, rejections: 0, odd: [] });
    expect(total.processes).toBeGreaterThan(SEEDS * 2);
  },
  (SEEDS + 1) * SEED_MS_MAX,
);
