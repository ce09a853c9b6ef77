// --list and --dry-run on many files.

import { expect, test } from 'vitest';
import { BatchDesk, noisyFiles, tidying } from '../../support/run/batch-desk.ts';

test('10,000 files are listed within two seconds of CPU time, without a request', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(10_000));
  for (const flag of ['--list', '--dry-run']) {
    // CPU time: wall-clock time would measure the machine's other load.
    const begun = process.cpuUsage();
    const { code, stdout } = await batch.drover([flag]);
    const { user, system } = process.cpuUsage(begun);
    process.stdout.write(`${flag}: ${Math.round((user + system) / 1_000)} ms of work\n`);
    expect([code, stdout.length > 5_000, user + system < 2_000_000]).toEqual([0, true, true]);
  }
  expect(batch.requests).toBe(0);
});
