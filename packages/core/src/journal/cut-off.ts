// Answers that a crash cut off: which ones a journal leaves open, and the records that retract them.
//
// A process that is killed can't tell its readers that an answer will never be whole. The next process
// that opens the journal does so, before anything else happens: readers retract the text they were shown.

import type { Recorded } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';

// Deltas have numbers too, and aren't kept. After a crash their count is unknown, so the next number
// leaves more room than a second of them can take.
export const SEQ_JUMP = 1_000_000;

/** The reason in the `attempt_discarded` of an answer that a crash cut off. */
export const CUT_OFF = 'drover was stopped before the answer was whole';
const PLACE = ['v', 'session', 'run', 'worker', 'task', 'attempt', 'turn', 'step'] as const;

/** One `attempt_discarded` for each answer that is still open at the end of these records. */
export function discardsFor(records: readonly JsonObject[]): readonly JsonObject[] {
  const open = openAnswers(records);
  if (open.length === 0) return [];
  const lastSeq = records.reduce((last, { seq }) => (typeof seq === 'number' ? Math.max(last, seq) : last), 0);
  const at = new Date().toISOString();
  return open.map((start, index) => ({
    ...Object.fromEntries(PLACE.flatMap((key) => (start[key] === undefined ? [] : [[key, start[key]]]))),
    seq: lastSeq + SEQ_JUMP + 1 + index,
    at,
    type: 'attempt_discarded',
    reason: CUT_OFF,
  }));
}

/** The `message_start` of each answer that has neither ended nor been discarded. */
function openAnswers(records: readonly JsonObject[]): readonly Recorded[] {
  const open = new Map<number | undefined, Recorded>(); // by worker: in a run several answer at once
  for (const record of records as unknown as readonly Recorded[]) {
    switch (record.type) {
      case 'message_start':
        if (record.role === 'assistant') open.set(record.worker, record);
        break;
      case 'run_start':
        open.clear(); // an older version resumed the run without a discard
        break;
      case 'message_end':
      case 'attempt_discarded':
      case 'done':
      case 'incomplete':
      case 'error':
      case 'cancelled':
      case 'session_end':
      case 'task_end':
        open.delete(record.worker);
    }
  }
  return [...open.values()];
}
