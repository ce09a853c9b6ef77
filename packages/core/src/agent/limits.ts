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
  /** Stops the clocks until the returned function is called: the agent waits for the user. */
  readonly hold: () => () => void;
  readonly stop: () => void;
};

/** Watches the limits of a turn. Uses monotonic timers, so a change of the system clock has no effect. */
export function watchTurnLimits(limits: Limits, outer: AbortSignal): Watch {
  const own = new AbortController();
  const reach = (limit: 'time' | 'idle', message: string) =>
    own.abort(new DroverError({ kind: 'limit.reached', limit, message }));

  const { timeoutMs, idleMs } = limits;
  const deadline = new Deadline(timeoutMs, (ms) => reach('time', `the time limit of ${ms / 1000} s is reached`));
  let last = performance.now();
  let holds = 0;
  let idle: NodeJS.Timeout | undefined;
  if (idleMs !== undefined) {
    const check = () => {
      if (holds === 0 && performance.now() - last >= idleMs) reach('idle', `nothing happened for ${idleMs / 1000} s`);
    };
    idle = setInterval(check, Math.max(5, Math.min(1_000, idleMs / 10)));
  }
  const hold = () => {
    holds += 1;
    deadline.stop();
    return () => {
      holds -= 1;
      last = performance.now();
      if (holds === 0) deadline.start();
    };
  };
  return {
    signal: AbortSignal.any([outer, own.signal]),
    progress: () => (last = performance.now()),
    hold,
    stop: () => {
      deadline.close();
      clearInterval(idle);
    },
  };
}

/** A time limit whose clock can be stopped. */
class Deadline {
  readonly #ms: number | undefined;
  readonly #reached: (ms: number) => void;
  #leftMs: number;
  #startedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(ms: number | undefined, reached: (ms: number) => void) {
    this.#ms = ms;
    this.#leftMs = ms ?? 0;
    this.#reached = reached;
    this.start();
  }

  start(): void {
    const ms = this.#ms;
    if (ms === undefined || this.#isClosed || this.#timer !== undefined) return;
    this.#startedAt = performance.now();
    this.#timer = setTimeout(() => this.#reached(ms), Math.max(1, this.#leftMs));
  }

  stop(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs -= performance.now() - this.#startedAt;
  }

  close(): void {
    this.#isClosed = true;
    this.stop();
  }
}

/** Returns why a signal was aborted. */
export function turnFailureOfSignal(signal: AbortSignal): Failure {
  return signal.reason instanceof DroverError ? signal.reason.failure : { kind: 'aborted', by: 'user' };
}

/** Wraps an admission so that waiting for it does not count as idle time. */
export function withoutIdleLimit({ admit }: Admission, progress: () => void): Admission {
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
export async function unlessTurnAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const given = Promise.withResolvers<void>();
  const giveUp = () => given.reject(new DroverError(turnFailureOfSignal(signal)));
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await Promise.race([work, given.promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** Wraps a question to the user so that the clocks of a turn stand still while it waits for the answer. */
export function withTurnClocksHeld<Args extends readonly unknown[], Answer>(
  ask: (...args: Args) => Promise<Answer>,
  hold: Watch['hold'],
): (...args: Args) => Promise<Answer> {
  return async (...args) => {
    const release = hold();
    try {
      return await ask(...args);
    } finally {
      release();
    }
  };
}
