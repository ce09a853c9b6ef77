// Cached views of session journals. The next look reads only the records that were added.

import { DroverError } from '@drover/core/errors';
import type { Recorded } from '@drover/protocol/events';
import { FORMAT_VERSION } from '@drover/core/journal/file/format';
import { readFurtherJournalRecords, type ReadTo } from '@drover/core/journal/file/tail';
import type { JsonObject } from '@drover/protocol/json';
import { SessionView } from './snapshot.ts';
import { bestEffort } from '@drover/core/promises';

const VIEWS_MAX = 32; // the least recently read is dropped
const BEGINNING: ReadTo = { line: 0, sum: '', bytes: 0 };

/** A journal up to an event. */
export type Looked = {
  readonly view: SessionView;
  /** True if no later event is on disk. */
  readonly isAll: boolean;
};

export class SessionViews {
  readonly #views = new Map<string, GrowingView>();

  /** Reads the journal up to the event `upTo`, or returns the error that prevents it. */
  async look(path: string, upTo: number): Promise<Looked | DroverError> {
    const growing = this.#views.get(path) ?? new GrowingView(path);
    this.#views.delete(path);
    this.#views.set(path, growing);
    const [oldest] = this.#views.keys();
    if (this.#views.size > VIEWS_MAX && oldest !== undefined) this.#views.delete(oldest);
    const looked = await growing.look(upTo);
    if (looked instanceof DroverError) this.forget(path);
    return looked;
  }

  forget(path: string): void {
    this.#views.delete(path);
  }
}

class GrowingView {
  readonly #path: string;
  readonly #view = new SessionView();
  #readTo = BEGINNING;
  #waiting: readonly JsonObject[] = []; // read, and behind the event that was asked for
  #last: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  look(upTo: number): Promise<Looked | DroverError> {
    const looking = this.#last.then(() => this.#look(upTo));
    this.#last = bestEffort(looking);
    return looking;
  }

  async #look(upTo: number): Promise<Looked | DroverError> {
    const path = this.#path;
    const { records, readTo, version = FORMAT_VERSION, damage } = await readFurtherJournalRecords(path, this.#readTo);
    if (version > FORMAT_VERSION) return new DroverError({ kind: 'journal.newer', path, version });
    if (damage !== undefined) return new DroverError({ kind: 'journal.damaged', path, ...damage });
    this.#readTo = readTo;
    const waiting = [...this.#waiting, ...records];
    const behind = waiting.findIndex(({ seq }) => typeof seq === 'number' && seq > upTo);
    const taken = behind < 0 ? waiting : waiting.slice(0, behind);
    for (const record of taken) this.#view.take(record as unknown as Recorded);
    this.#waiting = behind < 0 ? [] : waiting.slice(behind);
    return { view: this.#view, isAll: behind < 0 };
  }
}
