// 10,000 random reconnects: the deltas that a reader got sum to the answer.

import { expect, test } from 'vitest';
import { reconnecting } from '../../support/serve/reconnects.ts';

const JOURNALS = 100;
const RECONNECTS = 100; // per kind

test('with 10,000 random reconnects deltas sum to each text, and events come once', async () => {
  let connections = 0;
  for (let seed = 1; seed <= JOURNALS; seed++) {
    const told = await reconnecting(RECONNECTS, seed % 2 === 0 ? 4 : 1, seed);
    expect({ seed, wrong: told.wrong }).toEqual({ seed, wrong: [] });
    expect(told.heard).toEqual(told.kept);
    connections += told.connections;
  }
  expect(connections).toBeGreaterThanOrEqual(JOURNALS * RECONNECTS);
});
