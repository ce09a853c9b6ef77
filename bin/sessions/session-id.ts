// Which session is meant: by its whole id, or by as much of it as no other has.
//
// An id is a name somebody chose (--session NAME) or one that drover made, `ses_` and 32 digits. Of the
// latter the digits alone will do, and so will the first of them.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '@drover/core/failure';
import { journalPath } from '@drover/core/journal/session-journal';
import { listSessions, type SessionRow } from '@drover/core/journal/sessions';
import type { Io } from '../io.ts';
import { stateFolder } from '../settings.ts';
import { nearest } from '../suggestion.ts';
import { oneLine } from '../views/terminal-text.ts';

const MADE = /^ses_[0-9a-f]{32}$/;
const MADE_IN_PART = /^(ses_)?[0-9a-f]{6,32}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const NAME_RULE =
  'a session is named with 1 to 64 letters, digits, "-", "_" or ".", of which the first is a letter or digit';
const SHORT_CHARS = 8;
const LISTED_MAX = 4;
const TITLE_COLUMNS = 40;

/** The session whose id this is, or begins with this. */
export function findSession(home: string, typed: string): string {
  const ids = sessionIds(home);
  const found = matching(ids, typed);
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (ids.length === 0) throw new UsageError(`there is no session '${typed}', nor any other; ${HOW_TO_BEGIN}`);
  if (found.length > 1) {
    throw new UsageError(`'${typed}' may be any of ${listed(home, ids, found)}; type more of it`);
  }
  const near = nearest(bare(typed), ids.map(bare).concat(ids));
  const like = ids.filter((id) => id === near || bare(id) === near);
  const those = like.length > 0 ? `the nearest is ${listed(home, ids, like)}` : `there are ${listed(home, ids, ids)}`;
  throw new UsageError(`there is no session '${typed}'; ${those}; drover runs lists them`);
}

export const HOW_TO_BEGIN = 'begin one with: drover exec "fix the failing test"';

/** What --session means: a session there is, or the name of one to begin. */
export function sessionNamed(home: string, name: string): { readonly id: string; readonly isNew: boolean } {
  const ids = sessionIds(home);
  if (ids.includes(name)) return { id: name, isNew: false };
  // Names are typed whole: with "fix" nobody means "fix-tests". Ids that drover made are not.
  const made = ids.filter((id) => MADE.test(id));
  if (MADE_IN_PART.test(name) && matching(made, name).length > 0) return { id: findSession(home, name), isNew: false };
  if (name.startsWith('ses_')) return { id: findSession(home, name), isNew: false };
  return { id: name, isNew: true };
}

export function parseSessionName(text: string): string {
  if (!NAME.test(text)) throw new UsageError(`'${text}' is no name; ${NAME_RULE}`);
  return text;
}

/** As few characters of it as are needed, but enough to stay unique for a while. */
export function shortId(id: string, ids: readonly string[]): string {
  if (!MADE.test(id)) return id;
  const digits = bare(id);
  for (let chars = SHORT_CHARS; chars < digits.length; chars++) {
    const short = digits.slice(0, chars);
    if (!ids.includes(short) && matching(ids, short).length <= 1) return short;
  }
  return id;
}

export function sessionIds(home: string): readonly string[] {
  const folder = join(home, 'sessions');
  return existsSync(folder) ? readdirSync(folder).filter((id) => existsSync(journalPath(home, id))) : [];
}

/** For the shell to complete. */
export function offeredIds(io: Io): readonly string[] {
  const ids = sessionIds(stateFolder(io));
  return ids.map((id) => shortId(id, ids));
}

function matching(ids: readonly string[], typed: string): readonly string[] {
  const exact = ids.filter((id) => id === typed || id === `ses_${typed}`);
  if (exact.length > 0) return exact.slice(0, 1);
  return typed === '' ? [] : ids.filter((id) => id.startsWith(typed) || id.startsWith(`ses_${typed}`));
}

function bare(id: string): string {
  return id.replace(/^ses_/, '');
}

/** Some of them, the newest first, each with what was asked in it. */
function listed(home: string, ids: readonly string[], some: readonly string[]): string {
  const rows = listSessions(home).filter(({ id }) => some.includes(id));
  const words = rows.slice(0, LISTED_MAX).map((row) => `${shortId(row.id, ids)}${titled(row)}`);
  return [...words, ...(rows.length > LISTED_MAX ? [`${rows.length - LISTED_MAX} more`] : [])].join(', ');
}

function titled({ title }: SessionRow): string {
  const words = oneLine(title, TITLE_COLUMNS);
  return words === '' ? '' : ` (${words})`;
}
