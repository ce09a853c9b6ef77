// Opens the journal of a run in drover's state folder.

import { openRunJournal, type RunJournal } from '@drover/coordinator/run/journal';
import { keptIn, type Listeners } from '../session/open-journal.ts';

export type RunPlace = { readonly home: string; readonly run: string };

export function openRun({ home, run }: RunPlace, listeners: Listeners): Promise<RunJournal> {
  return keptIn(home, listeners, (hooks) => openRunJournal(home, run, hooks));
}
