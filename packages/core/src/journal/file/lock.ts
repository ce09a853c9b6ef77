// Journal lock: lets one process, and one Journal within it, write.
//
// The operating system holds the lock through SQLite, which is built into Node and works on every system. The lock
// ends with its process, however that ends, so there are never two live writers. A file next to the lock holds the
// owner's process id, for messages.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const SQLITE_BUSY = 5;
// Two processes that try at the same moment may both find the lock busy. Each retries after random waits before it
// reports the lock as taken. `isJournalLocked` holds the lock for less time than these waits.
const ATTEMPTS = 12;
const WAIT_MS_MAX = 30;

export class Lock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Takes the lock. Returns undefined if another process or Journal holds it. */
  static take(path: string): Lock | undefined {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const database = lockJournal(path);
      if (database !== undefined) {
        writeFileSync(journalLockOwnerPath(path), `${process.pid}\n`);
        return new Lock(database);
      }
      if (attempt < ATTEMPTS) pauseForJournalLock(1 + Math.random() * WAIT_MS_MAX);
    }
    return undefined;
  }

  release(): void {
    this.#database.close();
  }
}

/** Whether the lock is held. Read-only, and does not keep another process from taking the lock. */
export function isJournalLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    database.prepare('SELECT name FROM sqlite_schema').all();
    return false;
  } catch (error) {
    if (isJournalLockBusy(error)) return true;
    throw error;
  } finally {
    database.close();
  }
}

/** The process id of the last owner. */
export function journalLockOwner(path: string): string {
  // The owner writes this file right after it takes the lock, so the file may be missing for a moment.
  return existsSync(journalLockOwnerPath(path)) ? readFileSync(journalLockOwnerPath(path), 'utf8').trim() : 'unknown';
}

function lockJournal(path: string): DatabaseSync | undefined {
  const database = new DatabaseSync(path);
  try {
    // SQLite holds the lock until the transaction ends, which is when the database is closed.
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database.close();
    if (isJournalLockBusy(error)) return undefined;
    throw error;
  }
}

function pauseForJournalLock(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function journalLockOwnerPath(path: string): string {
  return `${path}.owner`;
}

function isJournalLockBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}
