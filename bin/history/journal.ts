// Reads a journal without writing it: everything that can be shown, even if it is damaged or of a newer drover.

import { readFile } from 'node:fs/promises';
import { isEventType, type Recorded } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError } from '@drover/core/errors';
import { FORMAT_VERSION, readJournalContents } from '@drover/core/journal/file/format';
import { isJournalLocked, journalLockOwner } from '@drover/core/journal/file/lock';
import { retellJournal } from '@drover/core/journal/retelling';
import type { ReadTo } from '@drover/core/journal/file/tail';
import type { JsonObject } from '@drover/protocol/json';

export type KeptJournal = {
  readonly path: string;
  readonly records: readonly JsonObject[];
  readonly readTo: ReadTo;
  readonly live: boolean; // a process is writing it
  /** Why the journal could not be read to its end. */
  readonly failure: Extract<Failure, { readonly kind: 'journal.damaged' | 'journal.newer' }> | undefined;
  /** The same as a sentence for the user. */
  readonly problem: string | undefined;
};

export async function readStoredJournal(path: string): Promise<KeptJournal> {
  const file = await readFile(path);
  const { version, records, goodBytes: bytes, lastSum: sum, damage } = readJournalContents(file);
  // The first line is the head, unless it is not written yet.
  const readTo = { line: bytes === 0 ? 0 : records.length + 1, sum, bytes };
  const kept = { path, records, readTo, live: isJournalLocked(`${path}.lock`) };
  if (version > FORMAT_VERSION) {
    const failure = { kind: 'journal.newer' as const, path, version };
    return { ...kept, failure, problem: describe(failure) };
  }
  if (damage === undefined) return { ...kept, failure: undefined, problem: undefined };
  const failure = { kind: 'journal.damaged' as const, path, ...damage };
  const behind = countJournalLines(file.subarray(bytes)) - 1;
  const problem = `${describe(failure)}${behind > 0 ? `; the ${behind} lines behind it are not shown` : ''}`;
  return { ...kept, failure, problem };
}

const LF = 0x0a;

function countJournalLines(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) lines++;
  return lines;
}

/** Its records as events again, without types that this drover doesn't know. */
export function listStoredEvents({ records, live }: Pick<KeptJournal, 'records' | 'live'>): readonly Recorded[] {
  return retellJournal(records, live).filter(({ type }) => isEventType(type));
}

/** Throws if another process writes the journal, or if it can't be read to its end. */
export function checkJournalUsable({ path, live, failure }: KeptJournal): void {
  if (live) throw new DroverError({ kind: 'journal.busy', path, owner: journalLockOwner(`${path}.lock`) });
  if (failure !== undefined) throw new DroverError(failure);
}
