// Whatever a conversation went through, what is sent is what providers accept. The slow lane sends fifty thousand.

import { expect } from 'vitest';
import { refusedHistories } from '../support/data/histories.ts';
import { proves } from '../support/proves.ts';

proves(
  'request.always-valid',
  'of a thousand random histories none is refused by a server as strict as the real ones',
  async () => {
    expect(await refusedHistories(1_000)).toEqual([]);
  },
  120_000,
);
