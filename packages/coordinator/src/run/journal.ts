// A run's place on the disk: its folder, its journal, and its past.

import { join } from 'node:path';
import type { Store } from '@drover/core/bus';
import { discardsFor } from '@drover/core/journal/cut-off';
import type { Recorded } from '@drover/protocol/events';
import { Journal, readJournal } from '@drover/core/journal/file/journal';
import { Recorder } from '@drover/core/journal/recorder';
import type { Hooks } from '@drover/core/journal/session-journal';
import { readRunHistory, type RunHistory } from './history.ts';

export type RunJournal = {
  readonly store: Store;
  readonly past: RunHistory | undefined; // undefined for a run that has not begun
  readonly close: () => Promise<void>;
};

export function runFolder(home: string, id: string): string {
  return join(home, 'runs', id);
}

export function runJournalPath(home: string, id: string): string {
  return join(runFolder(home, id), 'journal.jsonl');
}

/** Reads the records of a run that is at work. One that is being written at this moment may be missing. */
export async function readRunRecords(home: string, id: string): Promise<readonly Recorded[]> {
  // Our own records, each under its seal: they are what they were when they were written.
  return (await readJournal(runJournalPath(home, id))).records as unknown as readonly Recorded[];
}

/** Opens the journal for writing. Answers that a crash cut off are discarded on the disk before this resolves. */
export async function openRunJournal(home: string, id: string, hooks: Hooks): Promise<RunJournal> {
  const { journal, records } = await Journal.open({ path: runJournalPath(home, id), run: id, ...hooks });
  const discards = discardsFor(records);
  if (discards.length > 0) await journal.append(discards, true);
  const store = new Recorder({ journal, diagnose: hooks.diagnose });
  return { store, past: readRunHistory([...records, ...discards]), close: () => journal.close() };
}
