// Finds the run or session that the user means: by its whole id, or by a unique part of it.
//
// An id is a name that the user chose for a session (--session NAME), or one that drover made: `run_` or `ses_` and 32
// digits. For these, the digits or the first few of them are enough.
//
// Every command that works in a session starts here, so this file reads folder names only. Journals are read only to
// list the choices.

import { UsageError } from '@drover/core/errors';
import { listJournalIds as keptIn } from '@drover/core/journal/listing';
import type { Io } from '../io.ts';
import { stateFolder } from '../start/settings.ts';
import { nearestKnownWord } from '@drover/documents/suggestion';
import { textOnOneLine } from '../views/text/terminal-text.ts';

const MADE = /^(?:run|ses)_[0-9a-f]{32}$/;
const SESSION_IN_PART = /^(ses_)?[0-9a-f]{6,32}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const NAME_RULE =
  'a session is named with 1 to 64 letters, digits, "-", "_" or ".", of which the first is a letter or digit';
const SHORT_CHARS = 8;
const LISTED_MAX = 4;
const TITLE_COLUMNS = 40;

export type Kept = { readonly kind: 'run' | 'session'; readonly id: string };

export const HOW_TO_BEGIN = 'begin one with: drover run "replace moment with date-fns"';

/** Returns the run or session whose id equals this text or begins with it. */
export async function findRunOrSession(home: string, typed: string): Promise<Kept> {
  const runs = keptIn(home, 'runs');
  const ids = [...runs, ...keptIn(home, 'sessions')];
  const found = matchIds(ids, typed);
  const [id] = found;
  if (id !== undefined && found.length === 1) return { kind: runs.includes(id) ? 'run' : 'session', id };
  if (ids.length === 0) throw new UsageError(`there is no run or session '${typed}', nor any other; ${HOW_TO_BEGIN}`);
  if (found.length > 1) {
    throw new UsageError(`'${typed}' may be any of ${await listMatchingIds(home, ids, found)}; type more of it`);
  }
  // Ids made by drover may be shortened, so only the typed part is compared.
  const parts = new Map(
    ids.map((each) => [each, MADE.test(each) ? withoutIdPrefix(each).slice(0, withoutIdPrefix(typed).length) : each]),
  );
  const near = nearestKnownWord(withoutIdPrefix(typed), [...parts.values()]);
  const like = near === undefined ? [] : ids.filter((each) => parts.get(each) === near);
  const those = `${like.length > 0 ? 'the nearest is' : 'there are'} ${await listMatchingIds(home, ids, like.length > 0 ? like : ids)}`;
  throw new UsageError(`there is no run or session '${typed}'; ${those}; drover runs lists them`);
}

/** Resolves --session: an existing session, or the name of a new one. */
export async function findSessionByName(
  home: string,
  name: string,
): Promise<{ readonly id: string; readonly isNew: boolean }> {
  const ids = keptIn(home, 'sessions');
  if (ids.includes(name)) return { id: name, isNew: false };
  if (name.startsWith('run_'))
    throw new UsageError(`--session: '${name}' would be a run, and no more can be said in one; choose another name`);
  // Names must be typed in full: "fix" does not mean "fix-tests". Ids that drover made may be shortened.
  const made = ids.filter((id) => MADE.test(id));
  const isMade = SESSION_IN_PART.test(name) && matchIds(made, name).length > 0;
  if (!isMade && !name.startsWith('ses_')) return { id: name, isNew: true };
  const { kind, id } = await findRunOrSession(home, name);
  if (kind === 'run') throw new UsageError(`'${name}' is a run, and no more can be said in one`);
  return { id, isNew: false };
}

export function parseSessionName(text: string): string {
  if (!NAME.test(text)) throw new UsageError(`'${text}' is no name; ${NAME_RULE}`);
  return text;
}

/** Shortens an id to a unique prefix that will stay unique for a while. */
export function shortenId(id: string, ids: readonly string[]): string {
  if (!MADE.test(id)) return id;
  const digits = withoutIdPrefix(id);
  for (let chars = SHORT_CHARS; chars < digits.length; chars++) {
    const short = digits.slice(0, chars);
    if (!ids.includes(short) && matchIds(ids, short).length <= 1) return short;
  }
  return id;
}

/** The same for all runs and sessions. */
export function shortenStoredId(home: string, id: string): string {
  return shortenId(id, listStoredIds(home));
}

/** Ids of runs and sessions. */
export function listStoredIds(home: string): readonly string[] {
  return [...keptIn(home, 'runs'), ...keptIn(home, 'sessions')];
}

/** Candidates for completion by the shell. */
export function offerIdCompletions(io: Io): readonly string[] {
  const ids = listStoredIds(stateFolder(io));
  return ids.map((id) => shortenId(id, ids));
}

function matchIds(ids: readonly string[], typed: string): readonly string[] {
  const exact = ids.filter((id) => id === typed);
  if (exact.length > 0) return exact;
  const whole = ids.filter((id) => id !== withoutIdPrefix(id) && withoutIdPrefix(id) === typed);
  if (whole.length > 0) return whole;
  return typed === '' ? [] : ids.filter((id) => id.startsWith(typed) || withoutIdPrefix(id).startsWith(typed));
}

function withoutIdPrefix(id: string): string {
  return id.replace(/^(?:run|ses)_/, '');
}

/** Some of them, newest first, each with its goal or first prompt. */
async function listMatchingIds(home: string, ids: readonly string[], some: readonly string[]): Promise<string> {
  const { listRunsAndSessions } = await import('./rows.ts');
  const rows = listRunsAndSessions(home).filter(({ id }) => some.includes(id));
  const words = rows.slice(0, LISTED_MAX).map(({ id, title }) => `${shortenId(id, ids)}${quoteIdTitle(title)}`);
  return [...words, ...(rows.length > LISTED_MAX ? [`${rows.length - LISTED_MAX} more`] : [])].join(', ');
}

function quoteIdTitle(title: string): string {
  const words = textOnOneLine(title, TITLE_COLUMNS);
  return words === '' ? '' : ` (${words})`;
}
