// Opens a journal in drover's state folder, and reports disk problems at once.

import type { Store } from '@drover/core/bus';
import { DroverError } from '@drover/core/errors';
import { stateFolderProblem } from '../start/state-problem.ts';
import { type Hooks, openSessionJournal, type SessionJournal } from '@drover/core/journal/session-journal';
import type { Diagnostics } from '../diagnostics.ts';
import { printError, type Io } from '../io.ts';
import { errorCodeOf } from '../start/settings.ts';
import { diagnoseStore } from '../diagnosis/detailed-diagnostics.ts';

export type JournalPlace = { readonly home: string; readonly session: string };

export type Listeners = { readonly diagnostics: Diagnostics; readonly io: Io };

export function openJournalOfSession({ home, session }: JournalPlace, listeners: Listeners): Promise<SessionJournal> {
  return openWithDiskNotices(home, listeners, (hooks) => openSessionJournal(home, session, hooks));
}

/** Opens a journal of any kind with `open`. Throws an error that names the folder if it can't be opened. */
export async function openWithDiskNotices<Opened extends { readonly store: Store }>(
  home: string,
  { diagnostics, io }: Listeners,
  open: (hooks: Hooks) => Promise<Opened>,
): Promise<Opened> {
  const tell = (message: string): void => void printError(io, message);
  try {
    const opened = await open({
      onTrouble: tell,
      onRecovery: () => tell('the disk can be written again; continuing'),
      diagnose: (message) => diagnostics.diagnose(message, { home }, 'warn'),
    });
    return diagnostics.isDetailed ? { ...opened, store: diagnoseStore(opened.store, diagnostics.diagnose) } : opened;
  } catch (error) {
    if (error instanceof DroverError || !(error instanceof Error && 'code' in error)) throw error;
    // SQLite holds the lock. It has one code for all errors, and a text for each.
    const why = 'errstr' in error ? String(error.errstr) : errorCodeOf(error);
    throw stateFolderProblem(home, why, error);
  }
}
