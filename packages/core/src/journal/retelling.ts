// A journal told again as the events that views know.
//
// Deltas aren't kept, so each block's text comes as one; of an answer that was cut off by a crash, what
// had been noted of it is told, and then taken back.

import type { Event, Recorded } from '../events.ts';
import type { JsonObject } from '../json.ts';

type Noted = {
  readonly part: number;
  readonly kind: 'text' | 'thinking';
  readonly from: number;
  readonly text: string;
};

export function retell(records: readonly JsonObject[]): readonly Recorded[] {
  const told: Recorded[] = [];
  let noted: (Recorded & Noted)[] = [];
  for (const record of records as unknown as readonly Recorded[]) {
    if ((record.type as string) === 'partial') {
      noted.push(record as Recorded & Noted);
      continue;
    }
    if (record.type === 'text_end' || record.type === 'thinking_end') {
      const type = record.type === 'text_end' ? 'text_delta' : 'thinking_delta';
      const { text: delta, ...rest } = record;
      told.push({ ...rest, type, delta } as Recorded);
    }
    // What was noted of an answer is told only where the answer itself never came.
    if (record.type === 'attempt_discarded' || record.type === 'message_start') told.push(...notesTold(noted, record));
    if (record.type === 'message_end' || record.type === 'attempt_discarded' || record.type === 'message_start')
      noted = [];
    told.push(record);
  }
  const last = told.at(-1);
  return last === undefined ? told : [...told, ...notesTold(noted, last)];
}

function notesTold(noted: readonly (Recorded & Noted)[], after: Recorded): readonly Recorded[] {
  if (noted.length === 0 || after.type === 'attempt_discarded') return [];
  const { v, at, session, turn, step, seq } = noted[0] as Recorded;
  const place = { v, at, session, seq, ...(turn !== undefined && { turn }), ...(step !== undefined && { step }) };
  const events: readonly Event[] = [
    ...noted.map(({ kind, part, text }): Event => ({ type: `${kind}_delta`, part, delta: text })),
    { type: 'attempt_discarded', reason: 'drover was stopped before the answer was whole' },
  ];
  return events.map((event) => ({ ...place, ...event }) as Recorded);
}
