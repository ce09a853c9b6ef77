// Opens the journal of a run in drover's state folder, and the bus that writes it.

import { openRunJournal, type ReadRun, type RunJournal } from '@drover/coordinator/run/journal';
import { Bus } from '@drover/core/bus';
import { EventRedaction } from '@drover/core/redaction/event-redaction';
import type { Redactor } from '@drover/core/redaction/redactor';
import type { Event } from '@drover/protocol/events';
import { openWithDiskNotices, type Listeners } from '../session/open-journal.ts';

export type RunPlace = {
  readonly home: string;
  readonly run: string;
  /** Its journal as far as this command has read it. */
  readonly read?: ReadRun;
};

export function openRunBusJournal({ home, run, read }: RunPlace, listeners: Listeners): Promise<RunJournal> {
  return openWithDiskNotices(home, listeners, (hooks) =>
    openRunJournal(home, run, { ...hooks, ...(read && { read }) }),
  );
}

export function openRunBus(run: string, redactor: Redactor, { store, past }: Pick<RunJournal, 'store' | 'past'>): Bus {
  const redaction = new EventRedaction(redactor);
  return new Bus({
    owner: { run },
    lastSeq: past?.lastSeq ?? 0,
    store,
    pass: (event, place) => redaction.pass(event, place),
  });
}

/** Adds an event to the journal of a run that is not at work. Durable when this resolves. */
export async function tellRunEvents(run: string, redactor: Redactor, told: ToldRun): Promise<void> {
  const bus = openRunBus(run, redactor, told.journal);
  bus.emit(told.event, {});
  await bus.settled();
  bus.close();
}

export type ToldRun = { readonly journal: RunJournal; readonly event: Event };
