// Waiting in tests for something that nothing announces: a file, a process, a text on a stream. Bounded, and named in
// the error if it never comes.

import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_MS = 5;
const WAIT_MS_MAX = 30_000;

/** Resolves once the condition holds. Throws an error with the condition's text if that takes too long. */
export async function until(holds: () => boolean | Promise<boolean>, waitMsMax = WAIT_MS_MAX): Promise<void> {
  const deadline = performance.now() + waitMsMax;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited ${waitMsMax} ms in vain for ${String(holds)}`);
    await sleep(LOOK_MS);
  }
}
