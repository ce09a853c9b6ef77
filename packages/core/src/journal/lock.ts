// Who may write: one process, and within it one Journal.
//
// The operating system holds the lock (through SQLite, which is in Node and knows every system's way),
// so it is gone with its process however that ends, and two live writers never happen. The file next to
// it says who has it, for people.

import { readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

const SQLITE_BUSY = 5;

export class Lock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** The lock, or undefined where somebody else has it. */
  static take(path: string): Lock | undefined {
    const database = new DatabaseSync(path);
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

/** The process id of whoever took the lock last. */
export function ownerOf(path: string): string {
  return readFileSync(ownerPath(path), 'utf8').trim();
}

function ownerPath(path: string): string {
  return `${path}.owner`;
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}
