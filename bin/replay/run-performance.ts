// Replays a recorded run: shows the events of its journal, and sends, runs and writes nothing.
//
// The original intervals are divided by the speed. Speed 0 means no pause, and the time between an interruption and a
// resume is skipped at every speed.

import { isDeepStrictEqual } from 'node:util';
import { taskRowsOfState, RunState } from '@drover/coordinator/view/state';
import type { Recorded } from '@drover/protocol/events';
import type { TaskRow } from '@drover/protocol/run';
import type { View } from '../views/view.ts';
import { pause } from '@drover/core/promises';

// A longer timer fires at once in Node.
const SLEEP_MS_MAX = 2 ** 31 - 1;

/** The recording's clock, which runs at the replay's speed. */
export class RecordedClock {
  readonly #speed: number;
  #recordedMs = 0; // time in the recording
  #atMs = 0; // time of the real clock

  constructor(speed: number) {
    this.#speed = speed;
  }

  readonly now = (): number => this.#recordedMs + (Date.now() - this.#atMs) * this.#speed;

  /** Jumps to this time. */
  goTo(ms: number): void {
    this.#recordedMs = ms;
    this.#atMs = Date.now();
  }

  async waitFor(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#speed === 0) return this.goTo(ms);
    const waitMs = Math.min((ms - this.now()) / this.#speed, SLEEP_MS_MAX);
    // Overdue events are shown without a pause, so a slow screen does not fall further behind.
    if (waitMs >= 1) await pause(waitMs, signal);
  }
}

export async function replayRunEvents(
  events: readonly Recorded[],
  { view, clock }: { readonly view: View; readonly clock: RecordedClock },
  signal: AbortSignal,
): Promise<void> {
  for (const event of events) {
    const ms = Date.parse(event.at);
    if (event.type === 'run_start') clock.goTo(ms);
    else await clock.waitFor(ms, signal);
    if (signal.aborted) break;
    await view.show(event);
  }
  await view.close();
}

/** The first task whose row in `run_end` differs from its events; undefined if all agree. */
export function replayContradiction(events: readonly Recorded[]): string | undefined {
  const state = new RunState();
  for (const event of events) {
    if (event.type === 'run_end') {
      const told = new Map(event.tasks.map((row) => [row.task, comparableTaskRow(row)]));
      const folded = new Map(taskRowsOfState(state).map((row) => [row.task, comparableTaskRow(row)]));
      const odd = [...new Set([...told.keys(), ...folded.keys()])].find(
        (task) => !isDeepStrictEqual(told.get(task), folded.get(task)),
      );
      if (odd !== undefined)
        return `task ${odd} is not as recorded\n  recorded: ${JSON.stringify(told.get(odd))}\n  replayed: ${JSON.stringify(folded.get(odd))}`;
    }
    state.take(event);
  }
  return undefined;
}

function comparableTaskRow({ status, attempts, files, commit }: TaskRow): object {
  return { status, attempts, files, commit };
}
