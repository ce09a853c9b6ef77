// The state of a session, read from its journal.

import { type Past, foldSessionHistory } from '@drover/core/journal/history';
import { journalPath } from '@drover/core/journal/session-journal';
import type { Recorded } from '@drover/protocol/events';
import { type KeptJournal, readStoredJournal } from './journal.ts';

export type KeptSession = KeptJournal & {
  readonly id: string;
  readonly home: string;
  readonly past: Past | undefined;
};

export async function readSessionState(home: string, id: string): Promise<KeptSession> {
  const kept = await readStoredJournal(journalPath(home, id));
  // Records of a newer version are not interpreted.
  const past = kept.failure?.kind === 'journal.newer' ? undefined : foldSessionHistory(kept.records);
  return { ...kept, id, home, past };
}

/** The gate that failed at the end of the last turn: the agent is done, so a resume would do nothing more. */
export function failedGateOf(events: readonly Recorded[]): string | undefined {
  const ending = events.findLast(({ type }) => type === 'incomplete' || type === 'done');
  if (ending?.type !== 'incomplete' || ending.failure.kind !== 'gate.failed') return undefined;
  return ending.failure.command;
}
