// A worker thread lost in a whole run: its task is retried, and the others are not affected.
// The slow lane has threads that hang or exhaust their memory.

import { expect } from 'vitest';
import { proves } from '../../support/proves.ts';
import { runWithLostThread, TRIED_AGAIN } from '../../support/run/lost-run.ts';

proves(
  'worker.lost-alone',
  'a thread that dies costs its attempt: the task is retried and lands',
  async () => expect(await runWithLostThread('exit')).toEqual(TRIED_AGAIN),
  60_000,
);
