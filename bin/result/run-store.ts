// The run that a command names, and the store that holds its commits.

import { existsSync } from 'node:fs';
import { openRepository, type Repository } from '@drover/coordinator/git/repository';
import { openStore, type Store } from '@drover/coordinator/store/store';
import { UsageError } from '@drover/core/errors';
import { childEnvironment, gitEnvironment } from '@drover/core/tools/process/environment';
import type { RunSettings } from '@drover/protocol/run';
import { findKept, HOW_TO_BEGIN, shortIdIn } from '../history/id.ts';
import { listKept } from '../history/rows.ts';
import { type KeptRun, readRun } from '../history/run.ts';
import type { Io } from '../io.ts';
import { stateFolder } from '../start/settings.ts';

export type NamedRun = KeptRun & { readonly settings: RunSettings; readonly short: string };

/** The run of this id, or the newest one: of the folder's repository if it has any. Throws UsageError if there is none. */
export async function runNamed(typed: string | undefined, io: Io): Promise<NamedRun> {
  const home = stateFolder(io);
  const { kind, id } = typed === undefined ? newestRun(home, io.cwd) : await findKept(home, typed);
  const short = shortIdIn(home, id);
  if (kind === 'session') throw new UsageError(`${short} is a session, and this is for runs; drover runs lists them`);
  const kept = await readRun(home, id);
  if (kept.past === undefined)
    throw new UsageError(kept.problem ?? `run ${short} has not begun; begin one with: drover run "…"`);
  return { ...kept, short, settings: kept.past.settings };
}

function newestRun(home: string, cwd: string): { readonly kind: 'run'; readonly id: string } {
  const runs = listKept(home).flatMap((row) => (row.kind === 'run' && row.state !== 'empty' ? [row] : []));
  const newest = runs.find((row) => cwd === row.cwd || cwd.startsWith(`${row.cwd}/`)) ?? runs[0];
  if (newest === undefined) throw new UsageError(`there are no runs yet; ${HOW_TO_BEGIN}`);
  return newest;
}

export type OpenedRun = {
  readonly repository: Repository;
  readonly store: Store;
  readonly env: Readonly<Record<string, string>>; // of git
};

/** Throws UsageError if the user's repository is gone. */
export async function openRunStore({ settings, home, short }: NamedRun, io: Io): Promise<OpenedRun> {
  const { repository: top } = settings;
  if (!existsSync(top)) throw new UsageError(`${top}, the repository of run ${short}, is gone`);
  const env = childEnvironment(io.env);
  const repository = await openRepository(top, gitEnvironment(io.env));
  return { repository, env, store: await openStore({ home, repository, env }) };
}
