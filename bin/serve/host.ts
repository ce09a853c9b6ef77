// The host of the server: sessions and runs with the settings of this machine, and patches from git.

import { patchBetween } from '@drover/coordinator/batch/patches';
import { openRepository } from '@drover/coordinator/git/repository';
import { openStore } from '@drover/coordinator/store/store';
import { DroverError, UsageError } from '@drover/core/errors';
import { childEnvironment, gitEnvironment } from '@drover/core/tools/process/environment';
import type { Host, LandedCommit } from '@drover/server/host';
import { redactorFor } from '../diagnostics.ts';
import type { Io } from '../io.ts';
import { stateFolder } from '../start/settings.ts';
import { deliverLater } from '../result/deliver-later.ts';
import { withDiff } from '../result/run-diff.ts';
import { runNamed } from '../result/run-store.ts';
import { hostAgain, hostRun } from './run-host.ts';
import { hostSession } from './session-host.ts';
import type { ServeWishes } from './wishes.ts';

export type ServedPlace = { readonly root: string; readonly version: string };

export function hostFor(wishes: ServeWishes, { root, version }: ServedPlace): Host {
  const { io, diagnostics } = wishes;
  return {
    home: stateFolder(io),
    root,
    version,
    openSession: (wanted) => hostSession(wanted, wishes),
    startRun: (wanted) => hostRun(wanted, wishes),
    resumeRun: (wanted) => hostAgain(wanted, wishes),
    deliverRun: async (id, deliver) => deliverLater(await runNamed(id, io), { deliver, branch: undefined }, io),
    diffOf: (id) => diffOf(id, io),
    patchOf: (landed) => patchOf(landed, io),
    diagnose: diagnostics.diagnose,
  };
}

async function diffOf(id: string, io: Io): Promise<string | undefined> {
  try {
    const run = await runNamed(id, io);
    const raw = await withDiff(run, { task: undefined, io }, (diff) => diff.text({ form: 'patch' }));
    return (await redactorFor(io)).text(Buffer.from(raw, 'latin1').toString('utf8'));
  } catch (error) {
    if (error instanceof UsageError || error instanceof DroverError) return undefined;
    throw error;
  }
}

async function patchOf({ repository: top, commit }: LandedCommit, io: Io): Promise<string | undefined> {
  const env = childEnvironment(io.env);
  try {
    const repository = await openRepository(top, gitEnvironment(io.env));
    const { git } = await openStore({ home: stateFolder(io), repository, env });
    const patch = Buffer.from(await patchBetween(git, `${commit}^`, commit), 'latin1').toString('utf8');
    return (await redactorFor(io)).text(patch);
  } catch (error) {
    // The repository is gone, or the commit is.
    if (error instanceof UsageError || error instanceof DroverError) return undefined;
    throw error;
  }
}
