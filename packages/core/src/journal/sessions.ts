// Session list: one row per session, with its first prompt and its state.

import { FORMAT_VERSION, type Contents } from './file/format.ts';
import { foldSessionHistory, type Past } from './history.ts';
import { listJournals } from './listing.ts';
import { isJournalLocked } from './file/lock.ts';
import { journalPath } from './session-journal.ts';

const FOLDER = 'sessions';
const TITLE_CHARS_MAX = 80;

export type SessionRow = {
  readonly kind: 'session';
  readonly id: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly model: string;
  readonly cwd: string;
  readonly title: string; // first line of the first prompt
  readonly turns: number;
  readonly cost?: number; // US dollars; absent if the price is unknown
  /** `open`: the last turn has not ended. `damaged`: the journal cannot be read to its end. */
  readonly state: NonNullable<Past['ending']> | 'open' | 'suspended' | 'empty' | 'damaged' | 'newer';
};

/** Lists all sessions, newest first. */
export function listSessions(home: string): readonly SessionRow[] {
  return listJournals(home, { folder: FOLDER, rowOf: sessionRowOf });
}

/** Whether a process, this one included, is writing the session's journal. */
export function isSessionLive(home: string, id: string): boolean {
  return isJournalLocked(`${journalPath(home, id)}.lock`);
}

/** The first line of a prompt, truncated. */
export function sessionTitle(text: string): string {
  return text.trim().split('\n', 1)[0]?.slice(0, TITLE_CHARS_MAX) ?? '';
}

function sessionRowOf(id: string, { records, version, damage }: Contents): SessionRow {
  const past = foldSessionHistory(records);
  const times = records.map(({ at }) => at).filter((at) => typeof at === 'string');
  const asked = past?.messages.find(({ role }) => role === 'user');
  const text = asked?.role === 'user' && asked.content[0]?.type === 'text' ? asked.content[0].text : '';
  return {
    kind: 'session',
    id,
    startedAt: times[0] ?? '',
    updatedAt: times.at(-1) ?? '',
    model: past?.model ?? '',
    cwd: past?.cwd ?? '',
    title: sessionTitle(text),
    turns: past?.turn ?? 0,
    ...(past?.cost !== undefined && { cost: past.cost }),
    state: listedSessionState(past, version > FORMAT_VERSION, damage !== undefined),
  };
}

function listedSessionState(past: Past | undefined, isNewer: boolean, isDamaged: boolean): SessionRow['state'] {
  if (isNewer) return 'newer';
  if (isDamaged) return 'damaged';
  if (past === undefined || past.turn === 0) return 'empty';
  if ((past.open?.pending.length ?? 0) > 0) return 'suspended';
  return past.ending ?? 'open';
}
