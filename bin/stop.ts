// The wish to end early, as an AbortSignal: the first cause aborts politely, and is remembered.
//
// What happens when that takes too long, or the user insists with a second SIGINT, is decided where the
// process is: in drover.ts.

import { DroverError } from '@drover/core/errors';
import type { Io, StopCause } from './io.ts';

export type Stop = {
  readonly signal: AbortSignal;
  readonly cause: () => StopCause | undefined;
  readonly close: () => void;
};

export function watchForStop(io: Io, atOnce: () => void): Stop {
  const controller = new AbortController();
  let first: StopCause | undefined;
  const stop = (cause: StopCause): void => {
    if (first !== undefined) return;
    first = cause;
    controller.abort(new DroverError({ kind: 'aborted', by: cause === 'SIGINT' ? 'user' : 'shutdown' }));
  };
  const close = io.onStop({ stop, atOnce });
  return { signal: controller.signal, cause: () => first, close };
}
