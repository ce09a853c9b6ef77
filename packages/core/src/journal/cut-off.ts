// Answers that a crash cut off: finds them in a journal, and makes the records that retract them.
//
// A killed process cannot tell its readers that an answer will stay incomplete. The next process that opens the
// journal writes the retraction before anything else. Readers then drop the text that they already showed.

import type { Recorded } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';

// Deltas take sequence numbers but are not journaled, so after a crash their count is unknown.
// The next number skips more than one second of deltas can use.
export const SEQ_JUMP = 1_000_000;

/** The reason in the `attempt_discarded` of an answer that a crash cut off. */
export const CUT_OFF = 'drover was stopped before the answer was whole';
const PLACE = ['v', 'session', 'run', 'worker', 'task', 'attempt', 'turn', 'step'] as const;

/** One `attempt_discarded` for each answer that is still open at the end of these records. */
export function discardsForOpenAnswers(records: readonly JsonObject[]): readonly JsonObject[] {
  const open = new OpenAnswers();
  for (const record of records as unknown as readonly Recorded[]) open.take(record);
  const lastSeq = records.reduce((last, { seq }) => (typeof seq === 'number' ? Math.max(last, seq) : last), 0);
  return open.discards(lastSeq);
}

/** Folds records into the `message_start` of each answer that has neither ended nor been discarded. */
export class OpenAnswers {
  readonly #open = new Map<number | undefined, Recorded>(); // by worker: several workers of a run answer at once

  take(record: Recorded): void {
    switch (record.type) {
      case 'message_start':
        if (record.role === 'assistant') this.#open.set(record.worker, record);
        return;
      case 'run_start':
        this.#open.clear(); // an older version resumed the run without a discard
        return;
      case 'message_end':
      case 'attempt_discarded':
      case 'done':
      case 'incomplete':
      case 'error':
      case 'cancelled':
      case 'session_end':
      case 'task_end':
        this.#open.delete(record.worker);
    }
  }

  /** The records that retract these answers. `lastSeq`: the highest number in the journal. */
  discards(lastSeq: number): readonly JsonObject[] {
    const at = new Date().toISOString();
    return [...this.#open.values()].map((start, index) => ({
      ...Object.fromEntries(PLACE.flatMap((key) => (start[key] === undefined ? [] : [[key, start[key]]]))),
      seq: lastSeq + SEQ_JUMP + 1 + index,
      at,
      type: 'attempt_discarded',
      reason: CUT_OFF,
    }));
  }
}
