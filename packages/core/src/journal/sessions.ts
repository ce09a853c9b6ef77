// The sessions there are. The journals are the truth; the index beside them only saves reading them all
// again, and is made anew from them when it is missing, old or broken.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { FORMAT_VERSION, readContents } from './format.ts';
import { pastOf, type Past } from './history.ts';
import { isTaken } from './lock.ts';
import { journalPath } from './session-journal.ts';

const INDEX_VERSION = 1;
const TITLE_CHARS_MAX = 80;

export type SessionRow = {
  readonly id: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly model: string;
  readonly cwd: string;
  readonly title: string; // the first thing that was asked
  readonly turns: number;
  /** `open`: a turn has begun and not ended; `damaged`: the journal can't be read to its end. */
  readonly state: NonNullable<Past['ending']> | 'open' | 'suspended' | 'empty' | 'damaged' | 'newer';
};

/** All sessions, the newest first. */
export function listSessions(home: string): readonly SessionRow[] {
  const folder = join(home, 'sessions');
  if (!existsSync(folder)) return [];
  const index = Index.open(join(home, 'index.sqlite'));
  try {
    const rows = readdirSync(folder).flatMap((id) => {
      const path = journalPath(home, id);
      const found = statSync(path, { throwIfNoEntry: false });
      if (found === undefined) return [];
      const stamp = `${found.mtimeMs} ${found.size}`;
      return [index.get(id, stamp) ?? index.put(rowOf(id, path), stamp)];
    });
    return rows.sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
  } finally {
    index.close();
  }
}

/** True while some process, this one included, is writing it. */
export function isLive(home: string, id: string): boolean {
  return isTaken(`${journalPath(home, id)}.lock`);
}

function rowOf(id: string, path: string): SessionRow {
  const { records, version, damage } = readContents(readFileSync(path));
  const past = pastOf(records);
  const times = records.map(({ at }) => at).filter((at) => typeof at === 'string');
  const asked = past?.messages.find(({ role }) => role === 'user');
  const text = asked?.role === 'user' && asked.content[0]?.type === 'text' ? asked.content[0].text : '';
  return {
    id,
    startedAt: times[0] ?? '',
    updatedAt: times.at(-1) ?? '',
    model: past?.model ?? '',
    cwd: past?.cwd ?? '',
    title: text.trim().split('\n', 1)[0]?.slice(0, TITLE_CHARS_MAX) ?? '',
    turns: past?.turn ?? 0,
    state: stateOf(past, version > FORMAT_VERSION, damage !== undefined),
  };
}

function stateOf(past: Past | undefined, isNewer: boolean, isDamaged: boolean): SessionRow['state'] {
  if (isNewer) return 'newer';
  if (isDamaged) return 'damaged';
  if (past === undefined || past.turn === 0) return 'empty';
  if ((past.open?.pending.length ?? 0) > 0) return 'suspended';
  return past.ending ?? 'open';
}

class Index {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  static open(path: string): Index {
    try {
      return new Index(opened(path));
    } catch (error) {
      if (!(error instanceof Error && 'errcode' in error)) throw error;
      return Index.#anew(path);
    }
  }

  /** It holds nothing that isn't in the journals; where it can't be kept, the journals are read each time. */
  static #anew(path: string): Index {
    try {
      rmSync(path, { force: true });
      return new Index(opened(path));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error;
      return new Index(opened(':memory:'));
    }
  }

  get(id: string, stamp: string): SessionRow | undefined {
    const found = this.#database.prepare('SELECT row FROM sessions WHERE id = ? AND stamp = ?').get(id, stamp);
    return found === undefined ? undefined : (JSON.parse(String(found['row'])) as SessionRow);
  }

  put(row: SessionRow, stamp: string): SessionRow {
    this.#database.prepare('INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)').run(row.id, stamp, JSON.stringify(row));
    return row;
  }

  close(): void {
    this.#database.close();
  }
}

function opened(path: string): DatabaseSync {
  mkdirSync(join(path, '..'), { recursive: true });
  const database = new DatabaseSync(path, { timeout: 5_000 });
  const version = database.prepare('PRAGMA user_version').get()?.['user_version'];
  if (version !== INDEX_VERSION) {
    database.exec(`DROP TABLE IF EXISTS sessions; PRAGMA user_version = ${INDEX_VERSION}`);
  }
  // A transaction, because a database that can't be written says so only then.
  database.exec(
    'BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, stamp TEXT, row TEXT); COMMIT',
  );
  return database;
}
