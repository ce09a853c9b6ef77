// The run that a command names, and the store with its commits.

import { existsSync } from 'node:fs';
import { openRepository, type Repository } from '@drover/coordinator/git/repository';
import { openStore, type Store } from '@drover/coordinator/store/store';
import { UsageError } from '@drover/core/errors';
import { childProcessEnvironment, gitProcessEnvironment } from '@drover/core/tools/process/environment';
import type { RunSettings } from '@drover/protocol/run';
import { findRunOrSession, HOW_TO_BEGIN, type Kept, shortenStoredId } from '../history/id.ts';
import { isRowOf, listRunsAndSessions } from '../history/rows.ts';
import { type KeptRun, readRunState } from '../history/run.ts';
import type { Io } from '../io.ts';
import { stateFolder } from '../start/settings.ts';

export type NamedRun = KeptRun & { readonly settings: RunSettings; readonly short: string };

/** The run of this id, or the newest one of the folder's repository. Throws UsageError if there is none. */
export async function findNamedRun(typed: string | undefined, io: Io): Promise<NamedRun> {
  const home = stateFolder(io);
  return openNamedRun(typed === undefined ? newestRunHere(home, io.cwd) : await findRunOrSession(home, typed), home);
}

async function openNamedRun({ kind, id }: Kept, home: string): Promise<NamedRun> {
  const short = shortenStoredId(home, id);
  if (kind === 'session')
    throw new UsageError(`${short} is a session, but this command needs a run; drover runs lists them`);
  const kept = await readRunState(home, id);
  if (kept.past === undefined)
    throw new UsageError(kept.problem ?? `run ${short} has not begun; begin one with: drover run "…"`);
  return { ...kept, short, settings: kept.past.settings };
}

function newestRunHere(home: string, cwd: string): Kept {
  const runs = listRunsAndSessions(home).filter((row) => row.kind === 'run' && row.state !== 'empty');
  if (runs.length === 0) throw new UsageError(`there are no runs yet; ${HOW_TO_BEGIN}`);
  const newest = runs.find((row) => isRowOf(row, cwd));
  if (newest !== undefined) return newest;
  throw new UsageError(`there is no run of the repository in ${cwd}; name another one: drover runs lists them`);
}

export type OpenedRun = {
  readonly repository: Repository;
  readonly store: Store;
  readonly env: Readonly<Record<string, string>>; // git folder
};

/** Throws UsageError if the user's repository is gone. */
export async function openRunStore({ settings, home, short }: NamedRun, io: Io): Promise<OpenedRun> {
  const { repository: top } = settings;
  if (!existsSync(top)) throw new UsageError(`${top}, the repository of run ${short}, is gone`);
  const env = childProcessEnvironment(io.env);
  const repository = await openRepository(top, gitProcessEnvironment(io.env));
  return { repository, env, store: await openStore({ home, repository, env }) };
}
