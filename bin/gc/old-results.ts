// Cached results of batch tasks that no batch used for a long time: their number and size, and their removal.

import { listBatchCacheEntriesBefore, removeBatchCacheEntriesBefore } from '@drover/coordinator/batch/cache';
import { ageWords } from './old-journals.ts';
import type { Removable } from './removal-list.ts';

export type OldResults = { readonly before: number; readonly listed: readonly Removable[] };

/** Lists old results. Read-only. Without an age, all are kept. */
export async function findOldResults(home: string, olderThanMs: number | undefined): Promise<OldResults> {
  if (olderThanMs === undefined) return { before: 0, listed: [] };
  const before = Date.now() - olderThanMs;
  const old = await listBatchCacheEntriesBefore(home, before);
  if (old.length === 0) return { before, listed: [] };
  const what = `${old.length} kept result${old.length === 1 ? '' : 's'} of batches`;
  const bytes = old.reduce((sum, each) => sum + each.bytes, 0);
  return { before, listed: [{ what, why: `not used for at least ${ageWords(olderThanMs)}`, bytes }] };
}

export async function removeOldResults(home: string, { before, listed }: OldResults): Promise<void> {
  if (listed.length > 0) await removeBatchCacheEntriesBefore(home, before);
}
