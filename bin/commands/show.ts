// drover show <id> [task]: the result of a run, of one of its tasks, or of a session, and the next step.

import { join, resolve } from 'node:path';
import { rowsOf } from '@drover/coordinator/view/state';
import { UsageError } from '@drover/core/errors';
import type { TaskRow } from '@drover/protocol/run';
import { command, flag, list, nonEmpty, value } from '../start/command.ts';
import { redactorFor } from '../diagnostics.ts';
import { codeOfFailure, exitCode } from '../start/exit-code.ts';
import { complain, type Io, print, tell, tellJson } from '../io.ts';
import type { Paper } from '../history/facts.ts';
import { findKept, offeredIds, shortIdIn } from '../history/id.ts';
import { eventsIn, type KeptJournal } from '../history/journal.ts';
import { findTask, type KeptRun, readRun } from '../history/run.ts';
import { type KeptSession, readSession } from '../history/session.ts';
import { offeredTasks } from '../history/run-records.ts';
import { runSummaryOf, type RunSummary, standingOf } from '../history/summary/run-summary.ts';
import { headOf, summaryOf, type SessionSummary } from '../history/summary/session-summary.ts';
import { adviceLine, nextStepOfRun, nextStep } from '../history/state.ts';
import { taskLines, taskSummaryOf } from '../history/summary/task-summary.ts';
import { stateFolder } from '../start/settings.ts';
import { linesView } from '../views/lines.ts';
import { reportOf } from '../views/report.ts';
import { styleFor } from '../views/text/style.ts';
import { clean, columnsOf, forLog } from '../views/text/terminal-text.ts';

export const show = command({
  word: {
    name: 'id',
    about: 'Run or session: its id or a unique prefix',
    required: false,
    offered: offeredIds,
  },
  second: { name: 'task', about: 'Show only this task of the run', required: false, offered: offeredTasks },
  options: {
    json: flag('Options:', 'Print a summary as one JSON object'),
    merge: list('Batch:', 'DIR', 'Join the outputs of batch shards in DIR or its subfolders', nonEmpty),
    out: value('Batch:', 'DIR', 'Folder for the joined outputs (default: .drover/out)', nonEmpty),
    junit: value('Batch:', 'FILE', 'Also write the joined JUnit report to a file', nonEmpty),
  },
  examples: [
    ['drover show 1a2b3c', 'Show what landed, what failed and why, and what to do next'],
    ['drover show 1a2b3c billing', 'The result of one task of a run'],
    ['drover show nightly --json', 'The summary, for a script'],
    ['drover show --merge shards --out all', 'The shards of a batch as one report'],
  ],
  async run({ word, second, json, merge, out, junit }, io) {
    if (merge.length > 0 && word !== undefined)
      throw new UsageError(
        `--merge takes one folder each time: --merge ${merge.join(' --merge ')} --merge ${word} …, or the folder they are all in`,
      );
    if (merge.length > 0) return showJoined({ merge, out, junit, json }, io);
    if (word === undefined) throw new UsageError('drover show needs <id>; see drover show --help');
    const home = stateFolder(io);
    const { kind, id } = await findKept(home, word);
    if (kind === 'run') return showRun(await readRun(home, id), { task: second, json }, io);
    if (second !== undefined) throw new UsageError(`session ${id} has no tasks; a run has`);
    return showSession(await readSession(home, id), json, io);
  },
});

type Joining = {
  readonly merge: readonly string[];
  readonly out: string | undefined;
  readonly junit: string | undefined;
  readonly json: boolean;
};

/** Joins shards; returns the exit code of the batch as a whole. */
async function showJoined({ merge, out: wanted, junit, json }: Joining, io: Io): Promise<number> {
  const { joinBatches, joinedLine } = await import('../batch/results/join.ts');
  const out = resolve(io.cwd, wanted ?? join('.drover', 'out'));
  const step = io.env['GITHUB_STEP_SUMMARY'] ?? '';
  const joined = await joinBatches({
    folders: merge.map((folder) => resolve(io.cwd, folder)),
    out,
    junit: junit === undefined ? undefined : resolve(io.cwd, junit),
    appendTo: step === '' ? [] : [step],
    redactor: await redactorFor(io),
  });
  if (json) await tellJson(io, joined.summary);
  else await tell(io, clean(joinedLine(joined, out)));
  return joined.summary.exitCode;
}

type How = { readonly task: string | undefined; readonly json: boolean };

async function showRun(kept: KeptRun, { task: typed, json }: How, io: Io): Promise<number> {
  const paper = paperOf(io);
  const summary = runSummaryOf(kept);
  const task = typed === undefined ? undefined : findTask(kept, typed);
  const shown = task === undefined ? summary : taskSummaryOf(kept, task);
  const short = shortIdIn(kept.home, kept.id);
  if (json) await tellJson(io, shown);
  else if (task !== undefined) {
    const isLeft = summary.canGoOn && !summary.live && rowsOf(kept.state).some(isCancelled(task.id));
    const next = [
      `see its events with: drover logs ${short} ${task.id}`,
      ...(isLeft ? [nextStepOfRun(summary, short)] : []),
    ].map((advice) => adviceLine(advice, paper.columns));
    await tell(io, `${taskLines(taskSummaryOf(kept, task), task, paper)}\n${next.join('')}`);
  } else await tell(io, toldRun(summary, kept, { paper, short }));
  return complaint(kept, io);
}

const isCancelled =
  (id: string) =>
  ({ task, status }: TaskRow): boolean =>
    task === id && status === 'cancelled';

type Telling = { readonly paper: Paper; readonly short: string };

/** The report of a run that ended, or the progress of one that did not. */
function toldRun(summary: RunSummary, kept: KeptRun, { paper, short }: Telling): string {
  const isOver = kept.state.end !== undefined && summary.state !== 'live' && kept.failure === undefined;
  if (isOver) return reportOf(kept.state, paper, 'later');
  return `${standingOf(summary, kept, paper)}\n${adviceLine(nextStepOfRun(summary, short), paper.columns)}`;
}

async function showSession(kept: KeptSession, json: boolean, io: Io): Promise<number> {
  const redactor = await redactorFor(io);
  const records = kept.records.map((record) => redactor.value(record));
  const summary = summaryOf({ ...kept, records });
  if (summary !== undefined) {
    if (json) await tellJson(io, summary);
    else await tellSession({ ...kept, records }, redactor.value(summary as never) as SessionSummary, io);
  }
  return complaint(kept, io);
}

async function tellSession(kept: KeptSession, summary: SessionSummary, io: Io): Promise<void> {
  const paper = paperOf(io);
  await print(io.stdout, `${forLog(headOf(summary, paper), io.env)}\n`);
  const view = linesView(io.stdout, io.env, 'asked shown');
  if (kept.past !== undefined) {
    // The head shows model and folder already, so skip the first session_start. Later ones may differ.
    for (const [at, event] of eventsIn(kept).entries())
      if (at > 0 || event.type !== 'session_start') await view.show(event);
    await view.close();
    await print(io.stdout, '\n');
  }
  const short = shortIdIn(kept.home, kept.id);
  await print(io.stdout, adviceLine(nextStep(summary.state, short), paper.columns));
}

/** Prints the problem of a damaged journal last, so the user sees it. Returns the exit code. */
async function complaint({ failure, problem }: KeptJournal, io: Io): Promise<number> {
  if (failure === undefined) return exitCode.done;
  await complain(io, problem ?? '');
  return codeOfFailure(failure);
}

function paperOf(io: Io): Paper {
  return { columns: columnsOf(io.stdout), style: styleFor(io.stdout, io.env) };
}
