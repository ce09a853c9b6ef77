// Promises whose rejection is expected. Each function names the reason, so that no other error is swallowed by habit.

import { setTimeout as sleep } from 'node:timers/promises';

/** Marks a rejection as handled. Another reader of the promise reports it, now or later. */
export function handled(promise: Promise<unknown>): void {
  promise.catch(() => undefined);
}

/** Resolves to undefined if the work fails. Use it for clean-up and preparation that later code does without. */
export async function bestEffort<Value>(work: Promise<Value>): Promise<Value | undefined> {
  return work.catch(() => undefined);
}

/** Waits until the time has passed or the signal aborts. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
