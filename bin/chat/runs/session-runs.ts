// The runs that a session has started, and which of their reports the model has read: a file beside its journal.
//
// The journal of the run holds its results and cost, so it also counts after a crash, and after `drover resume`.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { runJournalPath } from '@drover/coordinator/run/journal';
import { writeBatchFileWhole } from '@drover/coordinator/batch/whole-file';
import { sessionRunsPath } from '@drover/core/journal/session-journal';
import { NO_SPENDING, type Spent, sumSpent } from '@drover/core/model/spending/spent';
import type { KeptRun } from '../../history/run.ts';

type Entry = { readonly run: string; readonly goal?: string; readonly isTold: boolean };

export class SessionRuns {
  readonly #home: string;
  readonly #path: string;
  #entries: readonly Entry[] = [];

  private constructor(home: string, session: string) {
    this.#home = home;
    this.#path = sessionRunsPath(home, session);
  }

  static async open(home: string, session: string): Promise<SessionRuns> {
    const runs = new SessionRuns(home, session);
    if (existsSync(runs.#path)) runs.#entries = JSON.parse(await readFile(runs.#path, 'utf8')) as readonly Entry[];
    return runs;
  }

  /** Durable before the run begins, so that a killed run is found again. */
  begin(run: string, goal: string): Promise<void> {
    return this.#write([...this.#entries, { run, goal, isTold: false }]);
  }

  /** The model has read all reports. */
  async tell(): Promise<void> {
    if (this.#entries.some(({ isTold }) => !isTold))
      await this.#write(this.#entries.map((entry) => ({ ...entry, isTold: true })));
  }

  get count(): number {
    return this.#entries.length;
  }

  /** The runs whose reports the model has not read, as they are now. */
  untold(): Promise<readonly KeptRun[]> {
    return this.#read(({ isTold }) => !isTold);
  }

  /** The spending of all runs together, or of one of them. */
  async spent(only?: string): Promise<Spent> {
    const runs = await this.#read(({ run }) => only === undefined || run === only);
    return runs.reduce((sum, { past }) => sumSpent(sum, past?.spent.total ?? NO_SPENDING), NO_SPENDING);
  }

  /** A run that was not begun, or was removed, has no journal. */
  async #read(isWanted: (entry: Entry) => boolean): Promise<readonly KeptRun[]> {
    const there = this.#entries.filter((each) => isWanted(each) && existsSync(runJournalPath(this.#home, each.run)));
    if (there.length === 0) return [];
    const { readRunState } = await import('../../history/run.ts');
    return Promise.all(there.map(({ run }) => readRunState(this.#home, run)));
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    this.#entries = entries;
    await writeBatchFileWhole(this.#path, `${JSON.stringify(entries)}\n`);
  }
}
