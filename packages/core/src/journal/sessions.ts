// Session list: one row per session, with its first prompt and its state.

import { existsSync, readFileSync } from 'node:fs';
import { FORMAT_VERSION, type Contents } from './file/format.ts';
import { foldSessionHistory, type Past } from './history.ts';
import { listJournals } from './listing.ts';
import { isJournalLocked } from './file/lock.ts';
import { journalPath, sessionRunsPath } from './session-journal.ts';

const FOLDER = 'sessions';
const TITLE_CHARS_MAX = 80;

// How the note about a run of a chat begins. It comes before the first words of the user.
const HANDED_OVER = '[The user has handed this conversation to a run with the goal: ';

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
  return listJournals(home, { folder: FOLDER, rowOf: sessionRowOf }).map((row) => withRunsOfSession(home, row));
}

/** Whether a process, this one included, is writing the session's journal. */
export function isSessionLive(home: string, id: string): boolean {
  return isJournalLocked(`${journalPath(home, id)}.lock`);
}

/** The first line of a prompt, truncated. A note about a run becomes the command that started it. */
export function sessionTitle(text: string): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  const title = line.startsWith(HANDED_OVER) ? `/run ${line.slice(HANDED_OVER.length).replace(/\]$/, '')}` : line;
  return title.slice(0, TITLE_CHARS_MAX);
}

/** The first line of the note about a run of a chat. */
export function handedOverLine(goal: string): string {
  return `${HANDED_OVER}${goal}]`;
}

/** A session without turns that has started a run is not empty. The index caches journals only. */
function withRunsOfSession(home: string, row: SessionRow): SessionRow {
  const path = sessionRunsPath(home, row.id);
  if (row.state !== 'empty' || row.model === '' || !existsSync(path)) return row;
  const [first] = JSON.parse(readFileSync(path, 'utf8')) as readonly { readonly goal?: string }[];
  return { ...row, state: 'done', title: sessionTitle(`/run ${first?.goal ?? ''}`) };
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
