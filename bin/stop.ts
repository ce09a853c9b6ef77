// The request to stop early, as an AbortSignal. The first cause aborts gracefully, and is remembered.
//
// drover.ts, which owns the process, decides what happens if that takes too long or if the user sends a second SIGINT.

import { DroverError } from '@drover/core/errors';
import type { Io, StopCause, StopListener } from './io.ts';

export type Stop = {
  readonly signal: AbortSignal;
  readonly stop: (cause: StopCause) => void;
  readonly cause: () => StopCause | undefined;
  readonly close: () => void;
};

/** `takes`: see StopListener. */
export function watchForStopSignal(io: Io, atOnce: () => void, takes?: StopListener['takes']): Stop {
  const controller = new AbortController();
  let first: StopCause | undefined;
  const stop = (cause: StopCause): void => {
    if (first !== undefined) return;
    first = cause;
    controller.abort(new DroverError({ kind: 'aborted', by: cause === 'SIGINT' ? 'user' : 'shutdown' }));
  };
  const close = io.onStop({ ...(takes && { takes }), stop, atOnce });
  return { signal: controller.signal, stop, cause: () => first, close };
}
