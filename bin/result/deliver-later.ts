// Delivers what has landed in a run after the run has ended.
//
// Guarantees
//   1. An obstacle (a dirty checkout, a branch that moved) is a UsageError, and nothing is changed.
//   2. Delivering again changes nothing, also after a crash at any point: `delivered` is told last.
//   3. The journal is locked meanwhile, so no other process works on the run.

import { join } from 'node:path';
import { gitHasCommit } from '@drover/coordinator/git/diff';
import type { RunHistory } from '@drover/coordinator/run/history';
import { runFolder } from '@drover/coordinator/run/journal';
import { canRunResume } from '@drover/coordinator/run/runs';
import { deliverResult } from '@drover/coordinator/merge/deliver';
import { UsageError } from '@drover/core/errors';
import type { Delivered, Delivery } from '@drover/protocol/run';
import { openDiagnostics } from '../diagnostics.ts';
import { checkJournalUsable } from '../history/journal.ts';
import type { Io } from '../io.ts';
import { openRunBusJournal, tellRunEvents } from '../run/open-run.ts';
import { openSecretRedactor } from '../secrets/own-secrets.ts';
import { checkResultBranch } from '../start/result-options.ts';
import { loadSettings } from '../start/settings.ts';
import { type NamedRun, openRunStore } from './run-store.ts';

const DELIVERY_MS_MAX = 300_000;

export type DeliveryWish = { readonly deliver: Delivery; readonly branch: string | undefined };

export async function deliverResultLater(run: NamedRun, wish: DeliveryWish, io: Io): Promise<Delivered> {
  checkJournalUsable(run);
  const { id, home, settings } = run;
  await using opened = new AsyncDisposableStack();
  const diagnostics = opened.adopt(await openDiagnostics(io, undefined), (each) => each.close());
  const journal = opened.adopt(await openRunBusJournal({ home, run: id }, { diagnostics, io }), (each) => each.close());
  // Reads under the lock, because the run may have been resumed since it was looked up.
  const merged = landedHeadOfRun(run, journal.past);
  const { repository: now, store, env } = await openRunStore(run, io);
  if (!(await gitHasCommit(store.git, merged)))
    throw new UsageError(`the commits of run ${run.short} are gone: drover's copy was removed, and no branch has them`);
  // The run's own branch was checked when the run began, and may hold what an interrupted delivery left.
  if (wish.branch !== undefined && wish.branch !== settings.resultBranch)
    await checkResultBranch(wish.branch, { gitDir: now.gitDir, env, commit: merged });
  const { branch: _today, ...repository } = now;
  const delivered = await deliverResult(
    {
      repository: { ...repository, ...(settings.branch !== undefined && { branch: settings.branch }) },
      store: store.gitDir,
      run: id,
      base: settings.base,
      env,
      merged,
      kept: [],
      deliver: wish.deliver,
      ...resultBranch(wish, run),
      patchFolder: join(runFolder(home, id), 'patches'),
      isStrict: true,
    },
    AbortSignal.timeout(DELIVERY_MS_MAX),
  ).catch((error: unknown) => {
    throw error instanceof UsageError ? new UsageError(deliverLaterRefusal(error.message, wish, run)) : error;
  });
  const redactor = openSecretRedactor(await loadSettings(io, settings.repository));
  await tellRunEvents(id, redactor, { journal, event: { type: 'delivered', delivered } });
  return delivered;
}

function landedHeadOfRun({ short, state }: NamedRun, past: RunHistory | undefined): string {
  const head = past?.ledger.head;
  if (head !== undefined) return head;
  const more = canRunResume(state) ? `; resume it with: drover resume ${short}` : '';
  throw new UsageError(`nothing has landed in run ${short}, so there is nothing to deliver${more}`);
}

function resultBranch({ branch }: DeliveryWish, { settings }: NamedRun): { readonly resultBranch?: string } {
  const name = branch ?? settings.resultBranch;
  return name === undefined ? {} : { resultBranch: name };
}

function deliverLaterRefusal(obstacle: string, { deliver: form }: DeliveryWish, { short }: NamedRun): string {
  const way =
    form === 'merge'
      ? `put that right, or take a branch and merge it yourself: drover merge ${short} --deliver branch`
      : `use drover merge ${short} --deliver branch --branch NAME`;
  return `${obstacle}. Nothing was changed; ${way}`;
}
