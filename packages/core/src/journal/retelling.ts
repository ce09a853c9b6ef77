// Journal replay: turns the records of a journal back into the events that views know.
//
// Deltas are not journaled, so each block's text becomes one delta. If a crash cut off an answer, its notes become
// deltas that are then retracted. If a live process is still writing the answer, its notes stay.

import type { Envelope, Recorded } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import { CUT_OFF } from './cut-off.ts';

type Delta = Extract<Recorded, { readonly type: 'text_delta' | 'thinking_delta' }>;

type Noted = Envelope & {
  readonly part: number;
  readonly kind: 'text' | 'thinking';
  readonly from: number;
  readonly text: string;
};

/** `isLive`: a process is still writing the journal. */
export function retellJournal(records: readonly JsonObject[], isLive = false): readonly Recorded[] {
  const told: Recorded[] = [];
  const notes = new Map<number | undefined, Noted[]>(); // by worker: several workers of a run answer at once
  const tellNotes = (workers: readonly (number | undefined)[]): void => {
    for (const worker of workers) told.push(...retellPartialRecords(notes.get(worker) ?? []));
    for (const worker of workers) notes.delete(worker);
  };
  for (const record of records as unknown as readonly Recorded[]) {
    if ((record.type as string) === 'partial') {
      const noted = notes.get(record.worker) ?? [];
      noted.push(record as unknown as Noted);
      notes.set(record.worker, noted);
      continue;
    }
    if (record.type === 'text_end' || record.type === 'thinking_end') {
      const type = record.type === 'text_end' ? 'text_delta' : 'thinking_delta';
      const { text: delta, ...rest } = record;
      told.push({ ...rest, type, delta } as Recorded);
      const others = notes.get(record.worker)?.filter(({ part }) => part !== record.part);
      if (others !== undefined) notes.set(record.worker, others);
    }
    // Notes become events only if the answer itself never came.
    if (record.type === 'run_start') tellNotes([...notes.keys()]);
    if (record.type === 'message_start') tellNotes([record.worker]);
    if (record.type === 'attempt_discarded' && record.reason === CUT_OFF)
      told.push(...retoldDeltas(notes.get(record.worker) ?? []));
    if (record.type === 'message_end' || record.type === 'attempt_discarded') notes.delete(record.worker);
    told.push(record);
  }
  if (isLive) for (const noted of notes.values()) told.push(...retoldDeltas(noted));
  else tellNotes([...notes.keys()]);
  return told;
}

const ENVELOPE = ['v', 'seq', 'at', 'session', 'run', 'worker', 'task', 'attempt', 'turn', 'step'] as const;

function retellPartialRecords(noted: readonly Noted[]): readonly Recorded[] {
  const deltas = retoldDeltas(noted);
  const [first] = deltas;
  if (first === undefined) return [];
  const { part: _, delta: _delta, ...envelope } = first;
  return [...deltas, { ...envelope, type: 'attempt_discarded', reason: CUT_OFF }];
}

function retoldDeltas(noted: readonly Noted[]): readonly Delta[] {
  const [first] = noted;
  if (first === undefined) return [];
  const envelope = Object.fromEntries(ENVELOPE.flatMap((key) => (first[key] === undefined ? [] : [[key, first[key]]])));
  return noted.map(({ kind, part, text }) => ({ ...envelope, type: `${kind}_delta`, part, delta: text }) as Delta);
}
