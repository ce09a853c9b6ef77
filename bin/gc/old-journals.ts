// Finished runs and sessions: lists those that could be removed, and removes exactly those.
//
// Only finished ones are listed. A run or session that can be resumed stays, however old, and so does a run that may
// hold the only copy of some work. The lock of a journal is taken before its removal, so no process can start to write
// it. Then the folder is renamed in one step and removed.

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isRunLive } from '@drover/coordinator/run/runs';
import { runJournalPath } from '@drover/coordinator/run/journal';
import { garbageBytesIn, type LandedWork } from '@drover/coordinator/gc/garbage';
import { removeFolderTree } from '@drover/coordinator/git/removal';
import { Lock } from '@drover/core/journal/file/lock';
import { journalPath } from '@drover/core/journal/session-journal';
import { readStoredBatch } from '../batch/history.ts';
import { isRowAtWork, type KeptRow, listRunsAndSessions } from '../history/rows.ts';
import { readRunState } from '../history/run.ts';

const GONE = '.gone-';
const HOUR_MS = 3_600_000;

export type OldThing = {
  readonly what: string;
  readonly why: string;
  readonly bytes: number;
  readonly path: string; // its folder
  /** The journal's state when it was listed; undefined for a partly removed one. */
  readonly stamp: string | undefined;
};
export type Staying = { readonly what: string; readonly why: string };
export type Old = { readonly garbage: readonly OldThing[]; readonly kept: readonly Staying[] };

export type Search = {
  readonly home: string;
  readonly olderThanMs: number | undefined; // undefined: keep all, of any age
  /** Why the work of a run prevents its removal; undefined if it doesn't. */
  readonly needed: (run: string) => string | undefined;
};

/** Lists the journals. Read-only. */
export async function findOldJournals({ home, olderThanMs, needed }: Search): Promise<Old> {
  const garbage: OldThing[] = [...(await findLeftoverJournals(home))];
  const kept: Staying[] = [];
  const now = Date.now();
  for (const row of olderThanMs === undefined ? [] : listRunsAndSessions(home)) {
    if (!(now - Date.parse(row.updatedAt) >= (olderThanMs ?? 0))) continue;
    const what = row.id.startsWith('run_') || row.id.startsWith('ses_') ? row.id : `${row.kind} ${row.id}`;
    const path = journalFolderPath(home, row);
    const obstacle = isRowAtWork(home, row)
      ? 'somebody is at work on it'
      : ((await whyJournalIsUnfinished(home, row)) ?? needed(row.id));
    if (obstacle !== undefined) kept.push({ what, why: obstacle });
    else {
      const why = `over for at least ${ageWords(olderThanMs ?? 0)}`;
      const bytes = await garbageBytesIn(dirname(path));
      garbage.push({ what, why, bytes, path: dirname(path), stamp: await journalStamp(path) });
    }
  }
  return { garbage, kept };
}

/** Runs that are at work or can be resumed; none of their data is garbage. */
export function listUnfinishedRuns(home: string): ReadonlySet<string> {
  const open = listRunsAndSessions(home).filter(
    (row) =>
      row.kind === 'run' &&
      (row.canGoOn || row.state === 'damaged' || row.state === 'newer' || isRunLive(home, row.id)),
  );
  return new Set(open.map(({ id }) => id));
}

/** Runs that share a budget with a resumable run: a resume counts their spending. */
export async function findPayersInUse(home: string): Promise<ReadonlySet<string>> {
  const batches = await Promise.all([...listUnfinishedRuns(home)].map((run) => readStoredBatch(home, run)));
  return new Set(batches.flatMap((batch) => batch?.within?.payers ?? []));
}

/** The landed commits of these runs. An unreadable run has none. */
export async function readLandedWork(home: string, runs: Iterable<string>): Promise<ReadonlyMap<string, LandedWork>> {
  const known = new Map<string, LandedWork>();
  for (const run of runs) {
    if (!existsSync(runJournalPath(home, run))) continue;
    const { past, failure } = await readRunState(home, run);
    if (past !== undefined && failure === undefined)
      known.set(run, { tasks: new Set(past.ledger.landed.keys()), head: past.ledger.head ?? past.settings.base });
  }
  return known;
}

async function whyJournalIsUnfinished(home: string, row: KeptRow): Promise<string | undefined> {
  if (row.state === 'damaged' || row.state === 'newer') return "drover can't tell what is in it";
  if (row.kind === 'session') return row.state === 'done' || row.state === 'empty' ? undefined : 'it can be resumed';
  if (row.canGoOn) return 'it can be resumed';
  const { state } = await readRunState(home, row.id);
  const patches = state.end?.delivered?.patches ?? [];
  return patches.length > 0 ? 'its patches may be the only copy of its work' : undefined;
}

async function findLeftoverJournals(home: string): Promise<readonly OldThing[]> {
  const names = await readdir(home).catch(() => []);
  const left = names.filter((name) => name.startsWith(GONE));
  return Promise.all(
    left.map(async (name) => {
      const path = join(home, name);
      return {
        what: path,
        why: 'what is left of something removed',
        bytes: await garbageBytesIn(path),
        path,
        stamp: undefined,
      };
    }),
  );
}

/** Removes journals that are unchanged since they were listed. Returns those that stay, with the reason. */
export async function removeOldJournals(home: string, list: readonly OldThing[]): Promise<readonly Staying[]> {
  const kept: Staying[] = [];
  for (const { what, path, stamp } of list) {
    const why = stamp === undefined ? undefined : await setJournalAside({ home, folder: path, stamp });
    if (why === undefined) continue;
    kept.push({ what, why });
  }
  await deleteSetAsideJournals(home);
  return kept;
}

/** Deletes journals that were set aside, including those of a killed process. */
export async function deleteSetAsideJournals(home: string): Promise<void> {
  const left = (await readdir(home)).filter((name) => name.startsWith(GONE));
  for (const name of left) await removeFolderTree(join(home, name));
}

type JournalFolder = { readonly home: string; readonly folder: string; readonly stamp: string };

/** Sets the folder of a journal aside in one step, after `first`. Returns why it stays; undefined on success. */
export async function setJournalAside(
  { home, folder, stamp }: JournalFolder,
  first: () => Promise<void> = async () => undefined,
): Promise<string | undefined> {
  const journal = join(folder, 'journal.jsonl');
  const lock = Lock.take(`${journal}.lock`);
  if (lock === undefined) return 'somebody is at work on it';
  try {
    if ((await journalStamp(journal)) !== stamp) return 'it has changed';
    await first();
    await rename(folder, join(home, `${GONE}${randomUUID()}`));
    return undefined;
  } finally {
    lock.release();
  }
}

/** Formats an age in words. */
export function ageWords(ms: number): string {
  const hours = Math.round(ms / HOUR_MS);
  return hours % 24 === 0 && hours > 0 ? `${hours / 24} days` : `${hours} hours`;
}

/** A value that changes whenever the journal does. */
export async function journalStamp(journal: string): Promise<string> {
  const { mtimeMs, size } = await stat(journal);
  return `${mtimeMs} ${size}`;
}

function journalFolderPath(home: string, { kind, id }: KeptRow): string {
  return kind === 'run' ? runJournalPath(home, id) : journalPath(home, id);
}
