// A run's place on the disk: its folder, its journal, and its past.

import { join } from 'node:path';
import type { Store } from '@drover/core/bus';
import { discardsFor } from '@drover/core/journal/cut-off';
import { Journal } from '@drover/core/journal/file/journal';
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

/** Opens the journal for writing. Answers that a crash cut off are discarded on the disk before this resolves. */
export async function openRunJournal(home: string, id: string, hooks: Hooks): Promise<RunJournal> {
  const { journal, records } = await Journal.open({ path: runJournalPath(home, id), run: id, ...hooks });
  const discards = discardsFor(records);
  if (discards.length > 0) await journal.append(discards, true);
  const store = new Recorder({ journal, diagnose: hooks.diagnose });
  return { store, past: readRunHistory([...records, ...discards]), close: () => journal.close() };
}
