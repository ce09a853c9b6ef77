// Work in progress whose events can be read while it runs.

import type { Bus, Shown } from '../bus.ts';
import { handled } from '../promises.ts';

/** Callers can iterate the events, await `result()`, or both. */
export type Showing<Result> = AsyncIterable<Shown> & { readonly result: () => Promise<Result> };

export function showAgentEvents<Result>(bus: Bus, begin: () => Promise<Result>): Showing<Result> {
  const reader = bus.reader();
  try {
    const result = begin().finally(() => reader.finish());
    // result() reports a failure. A caller that never awaits it must not crash on an unhandled rejection.
    handled(result);
    return { [Symbol.asyncIterator]: () => reader[Symbol.asyncIterator](), result: () => result };
  } catch (error) {
    reader.close();
    throw error;
  }
}
