// Placements of an earlier process of the run, from its journal.

import type { Recorded } from '@drover/protocol/events';
import type { Wish } from '@drover/coordinator/slots/slots';
import type { Checkpoint } from './placement.ts';

type Earlier = {
  /** The id of the host that had it last. */
  readonly host?: string;
  /** The files that it reported last. */
  readonly checkpoint?: Checkpoint;
  /** Every path at which the attempt had its workspace. */
  readonly workspaces: readonly string[];
};

export class EarlierPlacements {
  readonly #attempts = new Map<string, Earlier>();
  lastEpoch = 0;

  constructor(records: readonly Recorded[]) {
    for (const record of records) if (record.type === 'placement') this.#take(record);
  }

  /** Undefined if the attempt was never on a host. */
  of({ task, attempt }: Pick<Wish, 'task' | 'attempt'>): Earlier | undefined {
    return this.#attempts.get(`${task} ${attempt}`);
  }

  #take(record: Extract<Recorded, { readonly type: 'placement' }>): void {
    this.lastEpoch = Math.max(this.lastEpoch, record.epoch);
    const key = `${record.task} ${record.attempt}`;
    const before = this.#attempts.get(key) ?? { workspaces: [] };
    if (record.state === 'accepted') {
      const workspaces = [...before.workspaces, record.workspace];
      this.#attempts.set(key, { ...before, host: record.host.id, workspaces });
    } else if (record.state === 'checkpoint') {
      const { commit, leftOut } = record;
      this.#attempts.set(key, { ...before, checkpoint: { commit, leftOut } });
    }
  }
}
