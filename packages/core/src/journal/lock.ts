// Who may write: one process, and within it one Journal.
//
// The operating system holds the lock (through SQLite, which is in Node and knows every system's way),
// so it is gone with its process however that ends, and two live writers never happen. The file next to
// it says who has it, for people.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const SQLITE_BUSY = 5;
// Whoever only looks holds a read lock for less than this; a writer that comes meanwhile waits for it.
const LOOK_MS_MAX = 100;

export class Lock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** The lock, or undefined where somebody else has it. */
  static take(path: string): Lock | undefined {
    const database = new DatabaseSync(path, { timeout: LOOK_MS_MAX });
    try {
      database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    } catch (error) {
      database.close();
      if (isBusy(error)) return undefined;
      throw error;
    }
    writeFileSync(ownerPath(path), `${process.pid}\n`);
    return new Lock(database);
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

function ownerPath(path: string): string {
  return `${path}.owner`;
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}
