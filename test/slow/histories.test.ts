// Ten thousand random histories: the fast lane lives a thousand of them.

import { expect } from 'vitest';
import { proves } from '../support/proves.ts';
import { refusedHistories } from '../support/histories.ts';

proves('request.always-valid', 'of 10,000 random histories none is refused', async () => {
  expect(await refusedHistories(1_001, 10_000)).toEqual([]);
});
