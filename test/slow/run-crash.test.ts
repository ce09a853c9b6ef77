// A run killed with -9 at every record of its journal, before the record is on the disk and after.

import { expect, test } from 'vitest';
import { crashedRun } from '../support/run-crash.ts';

const WORKERS = 2;

test('whenever a run is killed, it comes to the same end, and asks nothing again that was answered', async () => {
  const whole = await crashedRun(0, 'after', WORKERS);
  const odd: string[] = [];
  let kills = 0;
  for (let at = 1; at <= whole.records; at++) {
    const when = at % 2 === 0 ? 'before' : 'after';
    const { tree, code, statuses, repeated, refused, wasKilled } = await crashedRun(at, when, WORKERS);
    if (wasKilled) kills += 1;
    const same = { tree: whole.tree, code: whole.code, statuses: whole.statuses, repeated: [], refused: 0 };
    const found = JSON.stringify({ tree, code, statuses, repeated, refused });
    if (found !== JSON.stringify(same)) odd.push(`${when} record ${at}: ${found}`);
  }
  process.stdout.write(`${kills} kills over ${whole.records} records: ${odd.length} came to another end\n`);
  expect(odd).toEqual([]);
  // Two workers at once don't always tell things in the same order, so the last few may find it over.
  expect(kills).toBeGreaterThan(whole.records * 0.9);
}, 3_600_000);
