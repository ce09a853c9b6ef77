// The time that a run has worked, from the times of its events.
//
// Guarantees
//   1. Time between two processes of a run is not counted, even if something was written to its journal meanwhile.
//   2. A clock that is set back takes no time away.

import { CUT_OFF } from '@drover/core/journal/cut-off';
import type { Recorded } from '@drover/protocol/events';

export class WorkedTime {
  #lastMs: number | undefined;
  #isAtWork = false; // true while a process of the run works
  #ms = 0; // up to the last event

  get ms(): number {
    return this.#ms;
  }

  /** `now` is wall-clock time. */
  until(now: number): number {
    return this.#ms + (this.#isAtWork && this.#lastMs !== undefined ? Math.max(0, now - this.#lastMs) : 0);
  }

  take(event: Recorded): void {
    const ms = Date.parse(event.at);
    if (isBetweenWorkedTime(event)) this.#isAtWork = false;
    if (this.#isAtWork && this.#lastMs !== undefined) this.#ms += Math.max(0, ms - this.#lastMs);
    if (event.type === 'run_start') this.#isAtWork = true;
    if (event.type === 'run_end') this.#isAtWork = false;
    this.#lastMs = ms;
  }
}

/** True if an event begins a process, or is written between two processes. */
function isBetweenWorkedTime(event: Recorded): boolean {
  switch (event.type) {
    case 'run_start':
    case 'delivered':
      return true;
    case 'tasks_reopened':
      return event.live !== true;
    case 'attempt_discarded':
      return event.reason === CUT_OFF;
    default:
      return false;
  }
}
