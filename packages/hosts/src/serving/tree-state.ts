// Tells cheaply whether files of a workspace may have changed since the last look, so that a call that changed nothing
// needs no git.
//
// Every change of a file or folder sets its ctime, which no process can choose. A change within the same tick of the
// kernel's clock could go unnoticed, so a state with a fresh ctime is never taken for an older one.

import { createHash } from 'node:crypto';
import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Git needs less time than a look at more entries than these. */
const ENTRIES_MAX = 5_000;
const FRESH_MS = 100;

export class TreeState {
  readonly #top: string;
  readonly #now: () => number;
  #last: string | undefined;

  constructor(top: string, now: () => number = Date.now) {
    this.#top = top;
    this.#now = now;
  }

  /** Whether anything may have changed since the last call. */
  hasChanged(): boolean {
    const before = this.#last;
    this.#last = this.#look();
    return this.#last === undefined || this.#last !== before;
  }

  /** A digest of all entries; undefined if it could be that of a later state too. */
  #look(): string | undefined {
    const hash = createHash('sha256');
    const freshMs = this.#now() - FRESH_MS;
    const waiting = [this.#top];
    let entries = 0;
    for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
      const names = readdirSync(folder).filter((name) => name !== '.git');
      entries += names.length;
      if (entries > ENTRIES_MAX) return undefined;
      for (const path of [folder, ...names.map((name) => join(folder, name))]) {
        const entry = lstatSync(path);
        if (entry.ctimeMs > freshMs) return undefined;
        hash.update(`${path}\0${entry.ino} ${entry.ctimeMs} ${entry.size} ${entry.mode}\0`);
        if (entry.isDirectory() && path !== folder) waiting.push(path);
      }
    }
    return hash.digest('base64');
  }
}
