// Runs and sessions in one list, for `drover runs` and for every lookup by id.

import { isRunLive, listRuns, type RunRow } from '@drover/coordinator/run/runs';
import { UsageError } from '@drover/core/errors';
import { isSessionLive, listSessions, type SessionRow } from '@drover/core/journal/sessions';
import { HOW_TO_BEGIN } from './id.ts';

export type KeptRow = RunRow | SessionRow;

/** All runs and sessions, newest first. */
export function listRunsAndSessions(home: string): readonly KeptRow[] {
  const rows: readonly KeptRow[] = [...listRuns(home), ...listSessions(home)];
  return rows.toSorted((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
}

/** The newest one of this folder, or of the repository around it. Throws UsageError if there is none. */
export function newestRowHere(home: string, cwd: string): KeptRow {
  const rows = listRunsAndSessions(home).filter(({ state }) => state !== 'empty');
  if (rows.length === 0) throw new UsageError(`there are no runs or sessions yet; ${HOW_TO_BEGIN}`);
  const newest = rows.find((row) => isRowOf(row, cwd));
  if (newest !== undefined) return newest;
  throw new UsageError(`there is no run or session of ${cwd}; name one of another folder: drover runs lists them`);
}

/** True for a folder that it works in, or one below. */
export function isRowOf(row: Pick<KeptRow, 'cwd'>, cwd: string): boolean {
  return cwd === row.cwd || cwd.startsWith(`${row.cwd}/`);
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
