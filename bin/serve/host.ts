// The host of the server: sessions and runs with the settings of this machine, and patches from git.

import { batchPatchBetween } from '@drover/coordinator/batch/patches';
import { openRepository } from '@drover/coordinator/git/repository';
import { openStore } from '@drover/coordinator/store/store';
import { DroverError, UsageError } from '@drover/core/errors';
import { childProcessEnvironment, gitProcessEnvironment } from '@drover/core/tools/process/environment';
import type { ServerInfo } from '@drover/client/wire';
import type { Host, LandedCommit } from '@drover/server/host';
import { diagnosticsRedactor } from '../diagnostics.ts';
import type { Io } from '../io.ts';
import { listModels } from '../model/list-models.ts';
import { loadSettings, stateFolder } from '../start/settings.ts';
import { deliverResultLater } from '../result/deliver-later.ts';
import { withRunDiff } from '../result/run-diff.ts';
import { findNamedRun } from '../result/run-store.ts';
import { serveRunAgain, serveRun } from './run-host.ts';
import { serveSession } from './session-host.ts';
import type { ServeWishes } from './wishes.ts';

export type ServedPlace = { readonly root: string; readonly version: string };

export function openServeHost(wishes: ServeWishes, { root, version }: ServedPlace): Host {
  const { io, diagnostics } = wishes;
  return {
    home: stateFolder(io),
    root,
    version,
    models: () => servedModels(wishes, root),
    openSession: (wanted) => serveSession(wanted, wishes),
    startRun: (wanted) => serveRun(wanted, wishes),
    resumeRun: (wanted) => serveRunAgain(wanted, wishes),
    deliverRun: async (id, deliver) =>
      deliverResultLater(await findNamedRun(id, io), { deliver, branch: undefined }, io),
    diffOf: (id) => serveRunDiff(id, io),
    patchOf: (landed) => servePatch(landed, io),
    diagnose: diagnostics.diagnose,
  };
}

/** Models whose provider has a key, or needs none. */
async function servedModels({ io, model }: ServeWishes, root: string): Promise<Pick<ServerInfo, 'model' | 'models'>> {
  const listed = listModels(await loadSettings(io, root));
  const usable = new Set(
    listed.providers.filter(({ hasKey, keyEnv }) => hasKey || keyEnv === undefined).map(({ provider }) => provider),
  );
  const used = model ?? listed.default?.model;
  return {
    ...(used !== undefined && { model: used }),
    models: listed.models
      .filter((each) => usable.has(each.model.slice(0, each.model.indexOf('/'))))
      .map(({ price, ...each }) => ({
        ...each,
        ...(price && { price: { input: price.input, output: price.output } }),
      })),
  };
}

async function serveRunDiff(id: string, io: Io): Promise<string | undefined> {
  try {
    const run = await findNamedRun(id, io);
    const raw = await withRunDiff(run, { task: undefined, io }, (diff) => diff.text({ form: 'patch' }));
    return (await diagnosticsRedactor(io)).text(Buffer.from(raw, 'latin1').toString('utf8'));
  } catch (error) {
    if (error instanceof UsageError || error instanceof DroverError) return undefined;
    throw error;
  }
}

async function servePatch({ repository: top, commit }: LandedCommit, io: Io): Promise<string | undefined> {
  const env = childProcessEnvironment(io.env);
  try {
    const repository = await openRepository(top, gitProcessEnvironment(io.env));
    const { git } = await openStore({ home: stateFolder(io), repository, env });
    const patch = Buffer.from(await batchPatchBetween(git, `${commit}^`, commit), 'latin1').toString('utf8');
    return (await diagnosticsRedactor(io)).text(patch);
  } catch (error) {
    // The repository is gone, or the commit is.
    if (error instanceof UsageError || error instanceof DroverError) return undefined;
    throw error;
  }
}
