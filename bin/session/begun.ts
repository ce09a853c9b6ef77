// The session to work in: a new one, or an existing one with its history.

import { newId } from '@drover/core/ids';
import type { JsonObject } from '@drover/protocol/json';
import type { Past } from '@drover/core/journal/history';
import type { Io } from '../io.ts';
import { sessionNamed } from '../history/id.ts';
import { checkUsable } from '../history/journal.ts';
import { readSession } from '../history/session.ts';
import { stateFolder } from '../start/settings.ts';

export type Begun = {
  readonly id: string;
  readonly past: Past | undefined;
  /** Records of its journal, if the session existed before. */
  readonly records?: readonly JsonObject[];
};

/** The session that --session names, or a new one without --session. */
export async function sessionFor(name: string | undefined, io: Io): Promise<Begun> {
  if (name === undefined) return { id: newId('ses'), past: undefined };
  const home = stateFolder(io);
  const { id, isNew } = await sessionNamed(home, name);
  if (isNew) return { id, past: undefined };
  const kept = await readSession(home, id);
  checkUsable(kept);
  return kept;
}
