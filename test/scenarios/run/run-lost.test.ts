// A worker's thread that is lost in the middle of a whole run: the task is tried again, the others do not notice. The slow
// lane has threads that hang, or eat up their memory.

import { expect } from 'vitest';
import { proves } from '../../support/proves.ts';
import { runWithLostThread, TRIED_AGAIN } from '../../support/run/lost-run.ts';

proves(
  'worker.lost-alone',
  'a thread that dies costs its attempt: the task is retried and lands',
  async () => expect(await runWithLostThread('exit')).toEqual(TRIED_AGAIN),
  60_000,
);
