// A clock that a test moves: timers and times of this process stand still until it does.

import { onTestFinished, vi } from 'vitest';

/** Stops the clock until the test ends. Returns a function that moves it, and runs the timers that are due. */
export function stoppedClock(): (ms: number) => Promise<void> {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  return async (ms) => void (await vi.advanceTimersByTimeAsync(ms));
}
