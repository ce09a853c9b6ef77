// A session as it stands in its journal, read and not written: what there is to show of it, also where
// the journal is damaged or of a newer drover.

import { readFile } from 'node:fs/promises';
import { type Recorded, deliveryOf } from '@drover/core/events';
import { DroverError, type Failure } from '@drover/core/failure';
import { FORMAT_VERSION, readContents } from '@drover/core/journal/format';
import { type Past, pastOf } from '@drover/core/journal/history';
import { ownerOf } from '@drover/core/journal/lock';
import { retell } from '@drover/core/journal/retelling';
import { journalPath } from '@drover/core/journal/session-journal';
import { isLive } from '@drover/core/journal/sessions';
import type { JsonObject } from '@drover/core/json';

export type KeptSession = {
  readonly id: string;
  readonly home: string;
  readonly records: readonly JsonObject[];
  readonly bytes: number; // as far as it could be read
  readonly past: Past | undefined;
  readonly live: boolean;
  /** Why not all of it could be read. */
  readonly failure: Extract<Failure, { readonly kind: 'journal.damaged' | 'journal.newer' }> | undefined;
};

export async function readSession(home: string, id: string): Promise<KeptSession> {
  const path = journalPath(home, id);
  const { version, records, goodBytes: bytes, damage } = readContents(await readFile(path));
  const live = isLive(home, id);
  // What a newer one means by its records is not known here, so nothing is made of them.
  if (version > FORMAT_VERSION)
    return { id, home, records, bytes, live, past: undefined, failure: { kind: 'journal.newer', path, version } };
  const failure = damage && { kind: 'journal.damaged' as const, path, ...damage };
  return { id, home, records, bytes, live, past: pastOf(records), failure };
}

/** Its records told again as events; types that this drover doesn't know are left out. */
export function eventsIn(records: readonly JsonObject[]): readonly Recorded[] {
  return retell(records).filter(({ type }) => (deliveryOf(type) as string | undefined) !== undefined);
}

/** Refuses a session that another process writes, or that can't be read to its end. */
export function checkUsable({ id, home, live, failure }: KeptSession): void {
  const path = journalPath(home, id);
  if (live) throw new DroverError({ kind: 'journal.busy', path, owner: ownerOf(`${path}.lock`) });
  if (failure !== undefined) throw new DroverError(failure);
}
