// Deadlines: one timer for each waiting session, which fires at its earliest call deadline.

import type { PendingCall } from '@drover/protocol/events';

const TIMER_MS_MAX = 2 ** 31 - 1;

export class Deadlines {
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #onDue: (id: string) => void;

  constructor(onDue: (id: string) => void) {
    this.#onDue = onDue;
  }

  /** Replaces the session's timer. Without pending calls, no timer is set. */
  watch(id: string, pending: readonly PendingCall[]): void {
    this.forget(id);
    if (pending.length === 0) return;
    const due = Math.min(...pending.map(({ deadline }) => Date.parse(deadline)));
    // A deadline beyond the longest possible timer is checked again when that timer fires.
    const waitMs = Math.min(Math.max(0, due - Date.now()), TIMER_MS_MAX);
    const timer = setTimeout(() => {
      this.#timers.delete(id);
      this.#onDue(id);
    }, waitMs);
    this.#timers.set(id, timer);
  }

  forget(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
  }

  close(): void {
    for (const id of this.#timers.keys()) this.forget(id);
  }
}
