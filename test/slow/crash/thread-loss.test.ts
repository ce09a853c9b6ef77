// A thread with four attempts, ended by one of them at every record of the run's journal: by an exception, by a full
// heap and by a loop.
//
// DROVER_LOSS_RECORDS=40-60 selects records.

import { expect } from 'vitest';
import { type Fault, type LostThread, runWithLoss } from '../../support/threads/thread-loss.ts';
import { proves } from '../../support/proves.ts';

const FAULTS: readonly Fault[] = ['throw', 'heap', 'loop'];
const AT_ONCE = 2;

proves(
  'worker.lost-alone',
  'a thread ended at any record costs its other attempts nothing',
  async () => {
    const whole = await runWithLoss(0, 'throw');
    const [from = 1, to = whole.records] = (process.env['DROVER_LOSS_RECORDS'] ?? '')
      .split('-')
      .filter(Boolean)
      .map(Number);
    const waiting = Array.from({ length: to - from + 1 }, (_, n) => from + n);
    const odd: string[] = [];
    let losses = 0;
    const lane = async (): Promise<void> => {
      for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
        const fault = FAULTS[at % FAULTS.length] ?? 'throw';
        const lost = await runWithLoss(at, fault);
        if (lost.moves > 0) losses += 1;
        if (gist(lost) !== gist(whole)) odd.push(`${fault} at record ${at}: ${gist(lost)}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    process.stdout.write(`${losses} losses moved attempts: ${odd.length} runs came to another end\n`);
    expect(odd).toEqual([]);
    expect(losses).toBeGreaterThan((to - from) / 4);
  },
  3_600_000,
);

function gist({ code, tree, statuses, attempts, requests, repeated }: LostThread): string {
  return JSON.stringify({ code, tree, statuses, attempts, requests, repeated });
}
