// Random histories: providers accept every request. The slow lane sends fifty thousand.

import { expect } from 'vitest';
import { refusedHistories } from '../support/data/histories.ts';
import { proves } from '../support/proves.ts';

proves(
  'request.always-valid',
  'a strict server refuses none of a thousand random histories',
  async () => {
    expect(await refusedHistories(1_000)).toEqual([]);
  },
  120_000,
);
