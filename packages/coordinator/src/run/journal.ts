// A run on the disk: its folder, its journal, and its history.

import { join } from 'node:path';
import type { Store } from '@drover/core/bus';
import type { Recorded } from '@drover/protocol/events';
import { Journal, readJournalFile } from '@drover/core/journal/file/journal';
import type { ReadTo } from '@drover/core/journal/file/tail';
import { Recorder } from '@drover/core/journal/recorder';
import type { Hooks } from '@drover/core/journal/session-journal';
import { RunHistory } from './history.ts';

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
  return (await readJournalFile(runJournalPath(home, id))).records as unknown as readonly Recorded[];
}

/** A journal that was read: its history, and up to where. */
export type ReadRun = { readonly past: RunHistory | undefined; readonly readTo: ReadTo };

type Opening = Hooks & { readonly read?: ReadRun };

/**
 * Opens the journal for writing. Answers that a crash cut off are discarded on the disk before this resolves.
 * If the journal was read before, only later records are read and added to its history.
 */
export async function openRunJournal(home: string, id: string, { read, ...hooks }: Opening): Promise<RunJournal> {
  const past = read?.past ?? new RunHistory();
  const readTo = read?.past && read.readTo;
  const { journal, records } = await Journal.open({
    path: runJournalPath(home, id),
    run: id,
    ...hooks,
    ...(readTo !== undefined && { read: readTo }),
  });
  past.takeAll(records);
  const discards = past.discards();
  if (discards.length > 0) await journal.append(discards, true);
  past.takeAll(discards);
  past.resume();
  const store = new Recorder({ journal, diagnose: hooks.diagnose });
  return { store, past: past.isBegun ? past : undefined, close: () => journal.close() };
}
