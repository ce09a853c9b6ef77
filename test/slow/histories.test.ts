// Fifty thousand random histories; the fast lane sends the first three hundred.

import { expect } from 'vitest';
import { proves } from '../support/proves.ts';
import { refusedHistories } from '../support/data/histories.ts';

proves('request.always-valid', 'none of 50,000 random histories is refused', async () => {
  expect(await refusedHistories(50_000)).toEqual([]);
});
