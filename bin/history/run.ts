// The state of a run, read from its journal.

import { foldRunHistory, type RunHistory } from '@drover/coordinator/run/history';
import { runJournalPath } from '@drover/coordinator/run/journal';
import type { RunState, TaskProgress } from '@drover/coordinator/view/state';
import { UsageError } from '@drover/core/errors';
import { nearestKnownWord } from '@drover/documents/suggestion';
import { cleanText } from '../views/text/terminal-text.ts';
import { type KeptJournal, readStoredJournal } from './journal.ts';

const NAMED_MAX = 8;

export type KeptRun = KeptJournal & {
  readonly id: string;
  readonly home: string;
  readonly past: RunHistory | undefined;
  readonly state: RunState;
};

export async function readRunState(home: string, id: string): Promise<KeptRun> {
  const kept = await readStoredJournal(runJournalPath(home, id));
  // Records of a newer version are not interpreted.
  const known = kept.failure?.kind === 'journal.newer' ? [] : kept.records;
  const history = foldRunHistory(known);
  return { ...kept, id, home, past: history.isBegun ? history : undefined, state: history.state };
}

/** Returns the task with exactly this id, since ids of tasks are short. */
export function findTaskOfRun({ state }: KeptRun, typed: string): TaskProgress {
  const task = state.tasks.get(typed);
  if (task !== undefined) return task;
  const ids = [...state.tasks.keys()];
  if (ids.length === 0) throw new UsageError(`there is no task '${typed}': the run has no plan yet`);
  const near = nearestKnownWord(typed, ids);
  const more = ids.length > NAMED_MAX ? ` and ${ids.length - NAMED_MAX} more` : '';
  const those = near === undefined ? `there are ${ids.slice(0, NAMED_MAX).join(', ')}${more}` : `did you mean ${near}?`;
  throw new UsageError(cleanText(`the run has no task '${typed}'; ${those}`));
}
