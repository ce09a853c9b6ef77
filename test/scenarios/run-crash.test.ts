// A run that is killed with -9 goes on where it was: the same tree, nothing asked again that was answered.
// A sample of the places to die at; the slow lane takes them all.

import { expect } from 'vitest';
import { proves } from '../support/proves.ts';
import { crashedRun } from '../support/run-crash.ts';

const WHOLE = {
  tree: { 'a.txt': 'both', 'base.txt': 'base' },
  code: 4,
  statuses: { base: 'landed', clash: 'landed', first: 'landed', red: 'gate_failed' },
  repeated: [],
  refused: 0,
};

// The last: all that the task was about is done and kept, and only that it has ended is not known.
const PLACES = [
  [20, 'after'],
  [150, 'after'],
  ['task_end', 'before'],
] as const;

for (const [at, when] of PLACES)
  proves(
    'run.kill-anywhere',
    `killed ${when} record ${at}, it comes to the same end`,
    async () => {
      expect(await crashedRun(at, when, 0)).toMatchObject({ ...WHOLE, wasKilled: true });
    },
    90_000,
  );
