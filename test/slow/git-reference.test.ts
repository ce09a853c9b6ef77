// Drover's index reader, sweep and commit writer compared with plain git on 1,000 random trees.

import { expect, test } from 'vitest';
import { compareWithGit } from '../support/run/git-reference.ts';

const TREES = 1_000;

test('drover and plain git agree on 1,000 random trees', async () => {
  const seeds = Array.from({ length: TREES }, (_, n) => n + 101);
  let compared = 0;
  for await (const { drover, git } of compareWithGit(seeds)) {
    expect(drover, `seed ${seeds[compared]}`).toEqual(git);
    compared++;
  }
  expect(compared).toBe(TREES);
});
