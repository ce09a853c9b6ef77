// drover gc: lists data that no run needs, and removes it once the user agrees.
//
// Guarantees
//   1. Data that may be the only copy of work is never listed.
//   2. Data of a run that is live or can be resumed is never listed.
//   3. Data that changes between listing and removal stays.

import { type Garbage, findGarbage, type GarbageOptions, removeGarbage } from '@drover/coordinator/gc/garbage';
import { listJournalIds } from '@drover/core/journal/listing';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { defineCommand, flagOption, valueOption } from '../start/command.ts';
import { Person } from '../terminal/person.ts';
import { exitCodeOfStop, exitCode } from '../start/exit-code.ts';
import { type Io, printLine, printJsonLine } from '../io.ts';
import type { Paper } from '../history/facts.ts';
import { stateAdviceLine } from '../history/state.ts';
import {
  findOldJournals,
  readLandedWork,
  type OldThing,
  findPayersInUse,
  removeOldJournals,
  type Staying,
  listUnfinishedRuns,
} from '../gc/old-journals.ts';
import { findOldResults, type OldResults, removeOldResults } from '../gc/old-results.ts';
import { type Removable, removalLines, countRemovedThings } from '../gc/removal-list.ts';
import { parseAge } from '../start/quantities.ts';
import { stateFolder } from '../start/settings.ts';
import { type Stop, watchForStopSignal } from '../stop.ts';
import { textStyle } from '../views/text/style.ts';
import { terminalColumns } from '../views/text/terminal-text.ts';

export const gc = defineCommand({
  options: {
    'older-than': valueOption(
      'Options:',
      'AGE',
      'Also remove finished runs, sessions and unused results older than this, such as 30d or 8w',
      parseAge,
    ),
    yes: flagOption('Options:', 'Remove without asking'),
    json: flagOption('Options:', 'Print one JSON object; removes nothing without --yes'),
  },
  examples: [
    ['drover gc', 'List what can be removed, and ask before removing it'],
    ['drover gc --older-than 30d --yes', 'Also remove what ended over 30 days ago'],
  ],
  async run({ 'older-than': olderThanMs, yes, json }, io) {
    const home = stateFolder(io);
    const found = await findGcWork(home, olderThanMs, io);
    const stop = watchForStopSignal(io, () => undefined);
    try {
      if (!json) await printLine(io, gcListing(found, home, io));
      const isAgreed = found.removable.length > 0 && (yes || (!json && (await confirmGc(found, io, stop))));
      if (stop.signal.aborted) return exitCodeOfStop(stop.cause());
      const stayed = isAgreed ? await removeGcFindings(found, home, io) : [];
      if (json) await printJsonLine(io, gcAsJson(found, stayed, isAgreed));
      else await printLine(io, gcResultText(found, { stayed, isAgreed, home }, io));
      return stayed.length === 0 ? exitCode.done : exitCode.incomplete;
    } finally {
      stop.close();
    }
  },
});

type Found = {
  readonly workspaces: readonly Garbage[];
  readonly old: readonly OldThing[];
  readonly results: OldResults;
  readonly removable: readonly Removable[]; // all of them
  readonly kept: readonly Staying[];
};

async function findGcWork(home: string, olderThanMs: number | undefined, io: Io): Promise<Found> {
  const options = await gcOptions(home, io);
  const { garbage: workspaces, kept: keptWork } = await findGarbage(options);
  const payers = await findPayersInUse(home);
  const needed = (run: string): string | undefined => {
    if (keptWork.some(({ what, why }) => `${what} ${why}`.includes(run))) return 'some of its work is kept';
    return payers.has(run) ? 'it shares a budget with a run that can be resumed' : undefined;
  };
  const { garbage: old, kept } = await findOldJournals({ home, olderThanMs, needed });
  const results = await findOldResults(home, olderThanMs);
  return {
    workspaces,
    old,
    results,
    removable: [...workspaces, ...old, ...results.listed],
    kept: [...keptWork, ...kept],
  };
}

async function gcOptions(home: string, io: Io): Promise<GarbageOptions> {
  const unfinished = listUnfinishedRuns(home);
  const over = listJournalIds(home, 'runs').filter((run) => !unfinished.has(run));
  return { home, env: childProcessEnvironment(io.env), unfinished, landed: await readLandedWork(home, over) };
}

function gcListing({ removable, kept }: Found, home: string, io: Io): string {
  const paper = gcPaper(io);
  const { style } = paper;
  const gone =
    removable.length === 0
      ? `${style('bold', 'Nothing to remove.')}\n`
      : `${style('bold', `Can be removed: ${countRemovedThings(removable)}`)}\n${removalLines(removable, home, paper)}`;
  const staying =
    kept.length === 0
      ? ''
      : `\n${style('bold', `Stays: ${countRemovedThings(kept)}`)}\n${removalLines(kept, home, paper)}`;
  return gone + staying;
}

const ANSWERS: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['n', false],
  ['no', false],
]);

async function confirmGc({ removable }: Found, io: Io, stop: Stop): Promise<boolean> {
  const person = Person.at(io);
  if (person === undefined) return false;
  try {
    const words = `\nRemove ${removable.length === 1 ? 'it' : 'them'}? [y]es [n]o: `;
    return (await person.choose(words, ANSWERS, stop.signal)) ?? false;
  } finally {
    person.close();
  }
}

async function removeGcFindings(
  { workspaces, old, results }: Found,
  home: string,
  io: Io,
): Promise<readonly Staying[]> {
  await removeOldResults(home, results);
  // Remove journals last, because they record what landed.
  const stayed = await removeGarbage(workspaces, await gcOptions(home, io));
  return [...stayed, ...(await removeOldJournals(home, old))];
}

type Done = { readonly stayed: readonly Staying[]; readonly isAgreed: boolean; readonly home: string };

function gcResultText({ removable }: Found, { stayed, isAgreed, home }: Done, io: Io): string {
  const paper = gcPaper(io);
  if (removable.length === 0) return '';
  if (!isAgreed) return `\n${stateAdviceLine('Nothing was removed; remove it with: drover gc --yes', paper.columns)}`;
  const staying = new Set(stayed.map(({ what }) => what));
  const gone = removable.filter(({ what }) => !staying.has(what));
  const left =
    stayed.length === 0
      ? ''
      : `\n${paper.style('bold', 'Not removed after all')}\n${removalLines(stayed, home, paper)}`;
  return `\nRemoved ${countRemovedThings(gone)}.\n${left}`;
}

function gcAsJson({ removable, kept }: Found, stayed: readonly Staying[], isAgreed: boolean) {
  const remove = removable.map(({ what, why, bytes }) => ({ what, why, bytes }));
  return { remove, keep: kept, removed: isAgreed, stayed };
}

function gcPaper(io: Io): Paper {
  return { columns: terminalColumns(io.stdout), style: textStyle(io.stdout, io.env) };
}
