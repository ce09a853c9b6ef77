// A run killed with -9 at every record of its journal, before and after the record is durable.
//
// DROVER_CRASH_RECORDS=40-60 selects records.

import { expect, test } from 'vitest';
import { crashedRun, type Crashed } from '../../support/run/run-crash.ts';

const WORKERS = 2;
const AT_ONCE = 2;

test('a run killed at any time has the same result and repeats no answered request', async () => {
  const whole = await crashedRun(0, 'after', WORKERS);
  const places = placesOf(whole.records);
  const odd: string[] = [];
  const waiting = [...places];
  let kills = 0;
  const lane = async (): Promise<void> => {
    for (let place = waiting.shift(); place !== undefined; place = waiting.shift()) {
      const { at, when } = place;
      const crashed = await crashedRun(at, when, WORKERS);
      if (crashed.wasKilled) kills += 1;
      const found = ending(crashed);
      if (found !== ending(whole)) odd.push(`${when} record ${at}: ${found}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  process.stdout.write(`${kills} kills over ${whole.records} records: ${odd.length} came to another end\n`);
  expect(odd).toEqual([]);
  // Two concurrent workers may emit events in another order, so the run may end before the last few kill points.
  expect(kills).toBeGreaterThan(places.length * 0.9);
}, 3_600_000);

type Place = { readonly at: number; readonly when: 'before' | 'after' };

// Both, because the work between two records may be done or not.
function placesOf(records: number): readonly Place[] {
  const [from = '1', to = `${records}`] = (process.env['DROVER_CRASH_RECORDS'] ?? '').split('-').filter(Boolean);
  const wanted = Array.from({ length: records }, (_, n) => n + 1).filter(
    (at) => at >= Number(from) && at <= Number(to),
  );
  return wanted.flatMap((at): readonly Place[] => [
    { at, when: 'before' },
    { at, when: 'after' },
  ]);
}

function ending({ tree, code, statuses, repeated, refused }: Crashed): string {
  return JSON.stringify({ tree, code, statuses, repeated, refused });
}
