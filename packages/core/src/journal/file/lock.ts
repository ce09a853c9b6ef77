// Who may write: one process, and within it one Journal.
//
// The operating system holds the lock (through SQLite, which is in Node and knows every system's way),
// so it is gone with its process however that ends, and two live writers never happen. The file next to
// it says who has it, for people.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const SQLITE_BUSY = 5;
// Two that come at the very same moment may both find it busy. So it is tried again, after waits of
// different lengths, before anybody is told that somebody else has it. Whoever only looks is over sooner.
const ATTEMPTS = 12;
const WAIT_MS_MAX = 30;

export class Lock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** The lock, or undefined where somebody else has it. */
  static take(path: string): Lock | undefined {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const database = locked(path);
      if (database !== undefined) {
        writeFileSync(ownerPath(path), `${process.pid}\n`);
        return new Lock(database);
      }
      if (attempt < ATTEMPTS) pause(1 + Math.random() * WAIT_MS_MAX);
    }
    return undefined;
  }

  release(): void {
    this.#database.close();
  }
}

/** True while somebody has the lock. Looking changes nothing, and keeps nobody from taking it. */
export function isTaken(path: string): boolean {
  if (!existsSync(path)) return false;
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    database.prepare('SELECT name FROM sqlite_schema').all();
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    database.close();
  }
}

/** The process id of whoever took the lock last. */
export function ownerOf(path: string): string {
  // It is written right after the lock was taken, so for a moment it may not be there.
  return existsSync(ownerPath(path)) ? readFileSync(ownerPath(path), 'utf8').trim() : 'unknown';
}

function locked(path: string): DatabaseSync | undefined {
  const database = new DatabaseSync(path);
  try {
    // Held until the transaction ends, which is when the database is closed.
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function ownerPath(path: string): string {
  return `${path}.owner`;
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}
