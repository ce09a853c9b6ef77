// Journal listing: all journals of one kind, one row each.
//
// The journals are the truth. The index only caches their rows, and is rebuilt if it is missing, outdated or broken.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { readJournalContents, type Contents } from './file/format.ts';

// Raise this when the content of rows changes: a different version drops all cached rows.
const INDEX_VERSION = 5;

const JOURNAL = 'journal.jsonl';

/** A kind of journal: the folder that holds them, and how one becomes a row. */
export type Kind<Row> = {
  readonly folder: string; // inside drover's home folder
  readonly rowOf: (id: string, contents: Contents) => Row;
};

/** Ids of all entries in `folder` that have a journal. */
export function listJournalIds(home: string, folder: string): readonly string[] {
  const place = join(home, folder);
  if (!existsSync(place)) return [];
  return readdirSync(place).filter((id) => existsSync(join(place, id, JOURNAL)));
}

/** Lists all journals of a kind, newest first. */
export function listJournals<Row extends { readonly id: string; readonly updatedAt: string }>(
  home: string,
  { folder, rowOf }: Kind<Row>,
): readonly Row[] {
  const ids = listJournalIds(home, folder);
  if (ids.length === 0) return [];
  const index = Index.open(join(home, 'index.sqlite'), folder);
  try {
    const rows = ids.flatMap((id) => {
      const path = join(home, folder, id, JOURNAL);
      const found = statSync(path, { throwIfNoEntry: false });
      if (found === undefined) return [];
      const stamp = `${found.mtimeMs} ${found.size}`;
      const known = index.get(id, stamp) as Row | undefined;
      return [known ?? index.put(rowOf(id, readJournalContents(readFileSync(path))), stamp)];
    });
    index.keepOnly(ids);
    return rows.sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
  } finally {
    index.close();
  }
}

class Index {
  readonly #database: DatabaseSync;
  readonly #kind: string;

  private constructor(database: DatabaseSync, kind: string) {
    this.#database = database;
    this.#kind = kind;
  }

  static open(path: string, kind: string): Index {
    try {
      return new Index(openJournalListing(path), kind);
    } catch (error) {
      if (!(error instanceof Error && 'errcode' in error)) throw error;
      return Index.#anew(path, kind);
    }
  }

  /** Rebuilds the index. If the file cannot be written, uses an index in memory. */
  static #anew(path: string, kind: string): Index {
    try {
      rmSync(path, { force: true });
      return new Index(openJournalListing(path), kind);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error;
      return new Index(openJournalListing(':memory:'), kind);
    }
  }

  get(id: string, stamp: string): unknown {
    const found = this.#database
      .prepare('SELECT row FROM rows WHERE kind = ? AND id = ? AND stamp = ?')
      .get(this.#kind, id, stamp);
    return found === undefined ? undefined : JSON.parse(String(found['row']));
  }

  put<Row extends { readonly id: string }>(row: Row, stamp: string): Row {
    this.#database
      .prepare('INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)')
      .run(this.#kind, row.id, stamp, JSON.stringify(row));
    return row;
  }

  /** Deletes the rows of journals that no longer exist. */
  keepOnly(ids: readonly string[]): void {
    const known = this.#database.prepare('SELECT id FROM rows WHERE kind = ?').all(this.#kind);
    if (known.length <= ids.length) return;
    const there = new Set(ids);
    const forget = this.#database.prepare('DELETE FROM rows WHERE kind = ? AND id = ?');
    for (const { id } of known) if (!there.has(String(id))) forget.run(this.#kind, String(id));
  }

  close(): void {
    this.#database.close();
  }
}

function openJournalListing(path: string): DatabaseSync {
  mkdirSync(join(path, '..'), { recursive: true });
  const database = new DatabaseSync(path, { timeout: 5_000 });
  const version = database.prepare('PRAGMA user_version').get()?.['user_version'];
  if (version !== INDEX_VERSION) {
    database.exec(`DROP TABLE IF EXISTS sessions; DROP TABLE IF EXISTS rows; PRAGMA user_version = ${INDEX_VERSION}`);
  }
  // A transaction, because SQLite reports a database as unwritable only when one begins.
  database.exec(
    'BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS rows (kind TEXT, id TEXT, stamp TEXT, row TEXT, PRIMARY KEY (kind, id)); COMMIT',
  );
  return database;
}
