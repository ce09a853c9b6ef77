// A run that is killed with -9 goes on where it was: the same tree, nothing asked again that was answered.
// A sample of the places to die at; the slow lane takes them all.

import { expect, test } from 'vitest';
import { proves } from '../support/proves.ts';
import { crashedRun } from '../support/run-crash.ts';

const WHOLE = {
  tree: { 'a.txt': 'both', 'base.txt': 'base' },
  code: 4,
  statuses: { base: 'landed', clash: 'landed', first: 'landed', red: 'gate_failed' },
  repeated: [],
  refused: 0,
};

test('undisturbed it lands three, and the gate stops one', async () => {
  expect(await crashedRun(0, 'after', 0)).toMatchObject({ ...WHOLE, wasKilled: false });
});

for (const at of [20, 90, 150])
  proves(
    'run.kill-anywhere',
    `killed at record ${at}, it comes to the same end`,
    async () => {
      expect(await crashedRun(at, 'after', 0)).toMatchObject({ ...WHOLE, wasKilled: true });
    },
    90_000,
  );
