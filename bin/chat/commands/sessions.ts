// /sessions and /resume: the sessions of this folder, and how another one is continued.

import { listSessions, type SessionRow } from '@drover/core/journal/sessions';
import { sessionNamed } from '../../history/id.ts';
import { checkUsable } from '../../history/journal.ts';
import { readSession } from '../../history/session.ts';
import { UsageError } from '@drover/core/errors';
import { ago } from '../../views/text/figures.ts';
import type { Choice } from '../screen/chooser.ts';
import type { Chat } from './slash.ts';

const LISTED_MAX = 20;

/** Sessions that worked in a folder, newest first. */
export function sessionsIn(home: string, cwd: string): readonly SessionRow[] {
  return listSessions(home).filter((row) => row.cwd === cwd && row.turns > 0);
}

export function choiceOf({ id, title, updatedAt, state }: SessionRow, short: (id: string) => string): Choice {
  return { label: short(id), about: `${title} (${ago(updatedAt, Date.now())}, ${state})` };
}

export async function listOfSessions({ surroundings, cwd, say, short }: Chat): Promise<void> {
  const rows = sessionsIn(surroundings.settings.home, cwd).slice(0, LISTED_MAX);
  if (rows.length === 0) return say('this folder has no sessions yet');
  for (const row of rows) {
    const { label, about } = choiceOf(row, short);
    await say(`${label}  ${about}`);
  }
}

export async function resumeSession(chat: Chat, name: string): Promise<void> {
  const { talk, surroundings, cwd, choose, short, say, retell } = chat;
  const { home } = surroundings.settings;
  const id = name === '' ? await chosen() : await named();
  if (id === undefined || id === talk.id) return say('this session goes on');
  const kept = await readSession(home, id);
  checkUsable(kept);
  await talk.switchTo(id);
  await retell(kept.records ?? []);

  async function chosen(): Promise<string | undefined> {
    const rows = sessionsIn(home, cwd);
    const at =
      rows.length === 0
        ? undefined
        : await choose(
            'resume',
            rows.map((row) => choiceOf(row, short)),
          );
    return at === undefined ? undefined : rows[at]?.id;
  }

  async function named(): Promise<string> {
    const found = await sessionNamed(home, name);
    if (found.isNew) throw new UsageError(`there is no session '${name}'; /sessions lists those of this folder`);
    return found.id;
  }
}
