// Work whose events can be watched while it is done.

import type { Bus, Shown } from '../bus.ts';

/** Iterate it, or await `result()`, or both. */
export type Showing<Result> = AsyncIterable<Shown> & { readonly result: () => Promise<Result> };

export function showing<Result>(bus: Bus, begin: () => Promise<Result>): Showing<Result> {
  const reader = bus.reader();
  try {
    const result = begin().finally(() => reader.finish());
    // Whoever awaits result() hears of a failure; whoever doesn't must not be crashed by it.
    result.catch(() => undefined);
    return { [Symbol.asyncIterator]: () => reader[Symbol.asyncIterator](), result: () => result };
  } catch (error) {
    reader.close();
    throw error;
  }
}
