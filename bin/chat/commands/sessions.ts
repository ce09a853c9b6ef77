// /sessions and /resume: the sessions of this folder, and how another one is continued.

import { listSessions, type SessionRow } from '@drover/core/journal/sessions';
import { findSessionByName } from '../../history/id.ts';
import { checkJournalUsable } from '../../history/journal.ts';
import { readSessionState } from '../../history/session.ts';
import { UsageError } from '@drover/core/errors';
import { agoText } from '../../views/text/figures.ts';
import type { Choice } from '../screen/chooser.ts';
import type { Chat } from './slash.ts';

const LISTED_MAX = 20;

/** Sessions that worked in a folder or started a run there, newest first. */
export function listChatSessions(home: string, cwd: string): readonly SessionRow[] {
  return listSessions(home).filter((row) => row.cwd === cwd && (row.turns > 0 || row.state === 'done'));
}

export function chatSessionChoice({ id, title, updatedAt, state }: SessionRow, short: (id: string) => string): Choice {
  return { label: short(id), about: `${title} (${agoText(updatedAt, Date.now())}, ${state})` };
}

export async function showChatSessions({ surroundings, cwd, say, short }: Chat): Promise<void> {
  const rows = listChatSessions(surroundings.settings.home, cwd).slice(0, LISTED_MAX);
  if (rows.length === 0) return say('this folder has no sessions yet');
  for (const row of rows) {
    const { label, about } = chatSessionChoice(row, short);
    await say(`${label}  ${about}`);
  }
}

export async function resumeChatSession(chat: Chat, name: string): Promise<void> {
  const { talk, surroundings, cwd, choose, short, say, retell } = chat;
  const { home } = surroundings.settings;
  const id = name === '' ? await chosen() : await named();
  if (id === undefined || id === talk.id) return say('this session goes on');
  const kept = await readSessionState(home, id);
  checkJournalUsable(kept);
  await talk.switchTo(id);
  await retell(kept.records ?? []);

  async function chosen(): Promise<string | undefined> {
    const rows = listChatSessions(home, cwd);
    const at =
      rows.length === 0
        ? undefined
        : await choose(
            'resume',
            rows.map((row) => chatSessionChoice(row, short)),
          );
    return at === undefined ? undefined : rows[at]?.id;
  }

  async function named(): Promise<string> {
    const found = await findSessionByName(home, name);
    if (found.isNew) throw new UsageError(`there is no session '${name}'; /sessions lists those of this folder`);
    return found.id;
  }
}
