// --list and --dry-run on many files.

import { expect, test } from 'vitest';
import { BatchDesk, noisyFiles, tidying } from '../support/batch-desk.ts';

test('10,000 files are listed, and looked at, in less than two seconds, without a request', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(10_000));
  for (const flag of ['--list', '--dry-run']) {
    const begun = performance.now();
    const { code, stdout } = await batch.drover([flag]);
    expect([code, stdout.length > 5_000, performance.now() - begun < 2_000]).toEqual([0, true, true]);
  }
  expect(batch.requests).toBe(0);
});
