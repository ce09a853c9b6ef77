// The session to work in: a new one, or an existing one with its history.

import { newId } from '@drover/core/ids';
import type { JsonObject } from '@drover/protocol/json';
import type { Past } from '@drover/core/journal/history';
import type { Io } from '../io.ts';
import { findSessionByName } from '../history/id.ts';
import { checkJournalUsable } from '../history/journal.ts';
import { readSessionState } from '../history/session.ts';
import { stateFolder } from '../start/settings.ts';

export type Begun = {
  readonly id: string;
  readonly past: Past | undefined;
  /** Records of its journal, if the session existed before. */
  readonly records?: readonly JsonObject[];
};

/** The session that --session names, or a new one without --session. */
export async function openBegunSession(name: string | undefined, io: Io): Promise<Begun> {
  if (name === undefined) return { id: newId('ses'), past: undefined };
  const home = stateFolder(io);
  const { id, isNew } = await findSessionByName(home, name);
  if (isNew) return { id, past: undefined };
  const kept = await readSessionState(home, id);
  checkJournalUsable(kept);
  return kept;
}
