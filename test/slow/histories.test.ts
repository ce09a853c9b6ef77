// Ten thousand random histories, of which the fast lane lives the first thousand.

import { expect } from 'vitest';
import { proves } from '../support/proves.ts';
import { refusedHistories } from '../support/histories.ts';

proves('request.always-valid', 'of 10,000 random histories none is refused', async () => {
  expect(await refusedHistories(1, 10_000)).toEqual([]);
});
