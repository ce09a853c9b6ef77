// Ends a turn from outside: cancel by the user, deadline, or idle timeout. Each aborts the same signal with
// its own reason.

import { DroverError } from '../errors.ts';
import type { Failure } from '@drover/protocol/failures';
import type { Limits } from '@drover/protocol/limits';
import type { Admission } from '../model/spending/admission.ts';

export const STEPS_MAX_DEFAULT = 200;
export const TEXT_CALL_RETRIES_DEFAULT = 2;

const WAITING_TOLD_MS = 100; // interval of progress reports while waiting for admission

export type Watch = {
  readonly signal: AbortSignal;
  /** Resets the idle clock. */
  readonly progress: () => void;
  readonly stop: () => void;
};

/** Watches the limits of a turn. Uses monotonic timers, so a change of the system clock has no effect. */
export function watch(limits: Limits, outer: AbortSignal): Watch {
  const own = new AbortController();
  const timers: NodeJS.Timeout[] = [];
  const reach = (limit: 'time' | 'idle', message: string) =>
    own.abort(new DroverError({ kind: 'limit.reached', limit, message }));

  const { timeoutMs, idleMs } = limits;
  if (timeoutMs !== undefined) {
    timers.push(setTimeout(() => reach('time', `the time limit of ${timeoutMs / 1000} s is reached`), timeoutMs));
  }
  let last = performance.now();
  if (idleMs !== undefined) {
    const check = () => {
      if (performance.now() - last >= idleMs) reach('idle', `nothing happened for ${idleMs / 1000} s`);
    };
    timers.push(setInterval(check, Math.max(5, Math.min(1_000, idleMs / 10))));
  }
  return {
    signal: AbortSignal.any([outer, own.signal]),
    progress: () => (last = performance.now()),
    stop: () => timers.forEach((timer) => clearTimeout(timer)),
  };
}

/** Returns why a signal was aborted. */
export function failureOf(signal: AbortSignal): Failure {
  return signal.reason instanceof DroverError ? signal.reason.failure : { kind: 'aborted', by: 'user' };
}

/** Wraps an admission so that waiting for it does not count as idle time. */
export function unhurried({ admit }: Admission, progress: () => void): Admission {
  return {
    admit: async (wanted, signal) => {
      const waiting = setInterval(progress, WAITING_TOLD_MS);
      try {
        return await admit(wanted, signal);
      } finally {
        clearInterval(waiting);
      }
    },
  };
}

/** Waits for `work`, or throws the signal's failure as soon as it is aborted. */
export async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const given = Promise.withResolvers<void>();
  const giveUp = () => given.reject(new DroverError(failureOf(signal)));
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await Promise.race([work, given.promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
