// Drover's index reader, sweep and commit writer compared with plain git on random trees. The slow lane compares 1,000.

import { expect, test } from 'vitest';
import { compareWithGit } from '../../support/run/git-reference.ts';

test('drover and plain git agree on 8 random trees', async () => {
  const seeds = Array.from({ length: 8 }, (_, n) => n + 1);
  for await (const { drover, git } of compareWithGit(seeds)) expect(drover).toEqual(git);
}, 120_000);
