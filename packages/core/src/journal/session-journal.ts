// A session on disk: its folder, its journal and its history.

import { join } from 'node:path';
import type { Store } from '../bus.ts';
import type { Message } from '@drover/protocol/messages';
import { discardsForOpenAnswers } from './cut-off.ts';
import { foldSessionHistory, type Past } from './history.ts';
import { lostRequestInJournal } from './lost-request.ts';
import { Journal } from './file/journal.ts';
import { Recorder } from './recorder.ts';

export type SessionJournal = {
  readonly store: Store;
  readonly past: Past | undefined; // undefined if the session has not started
  readonly close: () => Promise<void>;
};

export type Hooks = {
  /** Shown to the user immediately: the disk is full, or writable again. */
  readonly onTrouble: (message: string) => void;
  readonly onRecovery: () => void;
  readonly diagnose: (message: string) => void;
};

export function sessionFolder(home: string, id: string): string {
  return join(home, 'sessions', id);
}

export function journalPath(home: string, id: string): string {
  return join(sessionFolder(home, id), 'journal.jsonl');
}

/** The runs that a chat of this session has started: a list beside its journal. */
export function sessionRunsPath(home: string, id: string): string {
  return join(sessionFolder(home, id), 'runs.json');
}

/**
 * Opens the journal for writing. Answers that a crash cut off are durably discarded before this resolves, and a
 * request that it cut off is charged to the budget.
 * `before`: messages from before the session began. They are not in its records.
 */
export async function openSessionJournal(
  home: string,
  id: string,
  { before = [], ...hooks }: Hooks & { readonly before?: readonly Message[] },
): Promise<SessionJournal> {
  const { journal, records } = await Journal.open({ path: journalPath(home, id), session: id, ...hooks });
  const discarded = [...records, ...discardsForOpenAnswers(records)];
  const all = [...discarded, ...lostRequestInJournal(discarded)];
  if (all.length > records.length) await journal.append(all.slice(records.length), true);
  const store = new Recorder({ journal, diagnose: hooks.diagnose });
  return { store, past: foldSessionHistory(all, before), close: () => journal.close() };
}
