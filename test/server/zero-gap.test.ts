// A reader that joins, leaves and reconnects during answers gets every answer whole.

import { expect, test } from 'vitest';
import { reconnecting } from '../support/serve/reconnects.ts';

test.each([
  { workers: 1, seed: 1 },
  { workers: 1, seed: 2 },
  { workers: 4, seed: 3 },
])('with 100 random reconnects ($workers at once) the deltas sum to each text', async ({ workers, seed }) => {
  const { connections, blocks, wrong, heard, kept } = await reconnecting(100, workers, seed);
  expect(wrong).toEqual([]);
  expect(heard).toEqual(kept);
  expect(connections).toBeGreaterThanOrEqual(100);
  expect(blocks).toBeGreaterThan(30);
});
