// Threads of a whole run that throw, hang or exhaust their memory: the task is retried, and nothing is left behind.

import { expect, test } from 'vitest';
import { runWithLostThread, TRIED_AGAIN } from '../../support/run/lost-run.ts';

test.each(['throw', 'loop', 'heap'] as const)(
  'a thread lost by %s costs its attempt, and every task lands',
  async (fault) => {
    expect(await runWithLostThread(fault)).toEqual(TRIED_AGAIN);
  },
);
