// Runs and sessions in one list, for `drover runs` and for every lookup by id.

import { isRunLive, listRuns, type RunRow } from '@drover/coordinator/run/runs';
import { isSessionLive, listSessions, type SessionRow } from '@drover/core/journal/sessions';

export type KeptRow = RunRow | SessionRow;

/** All runs and sessions, newest first. */
export function listRunsAndSessions(home: string): readonly KeptRow[] {
  const rows: readonly KeptRow[] = [...listRuns(home), ...listSessions(home)];
  return rows.toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
}

/** A process is working on it. A finished one has little left to write. */
export function isRowAtWork(home: string, { kind, id, state }: KeptRow): boolean {
  return state !== 'done' && (kind === 'run' ? isRunLive(home, id) : isSessionLive(home, id));
}

/** It was begun and is not done, and a resume would continue it. */
export function wasRowInterrupted(home: string, row: KeptRow): boolean {
  const isOpen = row.kind === 'run' ? row.canGoOn : OPEN_SESSIONS.has(row.state);
  return isOpen && !isRowAtWork(home, row);
}

const OPEN_SESSIONS: ReadonlySet<SessionRow['state']> = new Set(['open', 'incomplete', 'error', 'cancelled']);
