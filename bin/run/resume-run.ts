// Goes on with a run that was interrupted, with the settings it was started with.

import { existsSync } from 'node:fs';
import { runPastOf } from '@drover/coordinator/past';
import { openRepository } from '@drover/coordinator/repository';
import { runJournalPath } from '@drover/coordinator/run-journal';
import { UsageError } from '@drover/core/failure';
import { readJournal } from '@drover/core/journal/journal';
import { childEnvironment } from '@drover/core/tools/environment';
import type { Io } from '../io.ts';
import { loadSettings, stateFolder } from '../settings.ts';
import type { RunArgs } from './run-options.ts';
import { startRun } from './start-run.ts';

export async function resumeRun(args: RunArgs, id: string, io: Io): Promise<number> {
  const { records } = await readJournal(runJournalPath(stateFolder(io), id));
  const past = runPastOf(records);
  if (past === undefined) throw new UsageError(`run ${id} has not begun; begin one with: drover run "…"`);
  if (past.isOver) throw new UsageError(`run ${id} is done; look at it with: drover show ${id}`);
  const { repository: top, base } = past.settings;
  if (!existsSync(top)) throw new UsageError(`${top}, the repository of run ${id}, is gone`);
  const settings = await loadSettings(io, top);
  const repository = { ...(await openRepository(top, childEnvironment(io.env))), head: base };
  return startRun(args, { id, run: past.settings, tasks: undefined, settings, repository }, io);
}
