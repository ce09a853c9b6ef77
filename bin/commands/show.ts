// drover show <id> [task]: the result of a run, of one of its tasks, or of a session, and the next step.

import { join, resolve } from 'node:path';
import { taskRowsOfState } from '@drover/coordinator/view/state';
import { UsageError } from '@drover/core/errors';
import type { TaskRow } from '@drover/protocol/run';
import { SessionRuns } from '../chat/runs/session-runs.ts';
import { defineCommand, flagOption, listOption, parseNonEmpty, valueOption } from '../start/command.ts';
import { diagnosticsRedactor } from '../diagnostics.ts';
import { exitCodeOfFailure, exitCode } from '../start/exit-code.ts';
import { printError, type Io, print, printLine, printJsonLine } from '../io.ts';
import type { Paper } from '../history/facts.ts';
import { findRunOrSession, offerIdCompletions, shortenStoredId } from '../history/id.ts';
import { listStoredEvents, type KeptJournal } from '../history/journal.ts';
import { newestRowHere } from '../history/rows.ts';
import { findTaskOfRun, type KeptRun, readRunState } from '../history/run.ts';
import { failedGateOf, type KeptSession, readSessionState } from '../history/session.ts';
import { offerTaskCompletions } from '../history/run-records.ts';
import { summarizeRun, type RunSummary, formatRunSummary } from '../history/summary/run-summary.ts';
import { formatSessionSummary, summarizeSession, type SessionSummary } from '../history/summary/session-summary.ts';
import { stateAdviceLine, nextStepOfRun, nextStepOfSession } from '../history/state.ts';
import { formatTaskSummary, summarizeTask } from '../history/summary/task-summary.ts';
import { stateFolder } from '../start/settings.ts';
import { linesView } from '../views/lines.ts';
import { runReport } from '../views/report.ts';
import { textStyle } from '../views/text/style.ts';
import { cleanText, terminalColumns, textForLog } from '../views/text/terminal-text.ts';

export const show = defineCommand({
  word: {
    name: 'id',
    about: 'Run or session: its id or a unique prefix (default: the newest one of this folder)',
    required: false,
    offered: offerIdCompletions,
  },
  second: { name: 'task', about: 'Show only this task of the run', required: false, offered: offerTaskCompletions },
  options: {
    json: flagOption('Options:', 'Print a summary as one JSON object'),
    merge: listOption('Batch:', 'DIR', 'Join the outputs of batch shards in DIR or its subfolders', parseNonEmpty),
    out: valueOption('Batch:', 'DIR', 'Folder for the joined outputs (default: .drover/out)', parseNonEmpty),
    junit: valueOption('Batch:', 'FILE', 'Also write the joined JUnit report to a file', parseNonEmpty),
  },
  examples: [
    ['drover show', 'Show the newest run or session of this folder'],
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
    if (merge.length > 0) return showJoinedBatches({ merge, out, junit, json }, io);
    const home = stateFolder(io);
    const { kind, id } = word === undefined ? newestRowHere(home, io.cwd) : await findRunOrSession(home, word);
    if (kind === 'run') return showRunCommand(await readRunState(home, id), { task: second, json }, io);
    if (second !== undefined) throw new UsageError(`session ${id} has no tasks; a run has`);
    return showSessionCommand(await readSessionState(home, id), json, io);
  },
});

type Joining = {
  readonly merge: readonly string[];
  readonly out: string | undefined;
  readonly junit: string | undefined;
  readonly json: boolean;
};

/** Joins shards; returns the exit code of the batch as a whole. */
async function showJoinedBatches({ merge, out: wanted, junit, json }: Joining, io: Io): Promise<number> {
  const { joinBatches, joinedBatchesLine } = await import('../batch/results/join.ts');
  const out = resolve(io.cwd, wanted ?? join('.drover', 'out'));
  const step = io.env['GITHUB_STEP_SUMMARY'] ?? '';
  const joined = await joinBatches({
    folders: merge.map((folder) => resolve(io.cwd, folder)),
    out,
    junit: junit === undefined ? undefined : resolve(io.cwd, junit),
    appendTo: step === '' ? [] : [step],
    redactor: await diagnosticsRedactor(io),
  });
  if (json) await printJsonLine(io, joined.summary);
  else await printLine(io, cleanText(joinedBatchesLine(joined, out)));
  return joined.summary.exitCode;
}

type How = { readonly task: string | undefined; readonly json: boolean };

async function showRunCommand(kept: KeptRun, { task: typed, json }: How, io: Io): Promise<number> {
  const paper = showPaper(io);
  const summary = summarizeRun(kept);
  const task = typed === undefined ? undefined : findTaskOfRun(kept, typed);
  const shown = task === undefined ? summary : summarizeTask(kept, task);
  const short = shortenStoredId(kept.home, kept.id);
  if (json) await printJsonLine(io, shown);
  else if (task !== undefined) {
    const isLeft = summary.canGoOn && !summary.live && taskRowsOfState(kept.state).some(isRunCancelled(task.id));
    const next = [
      `see its events with: drover logs ${short} ${task.id}`,
      ...(isLeft ? [nextStepOfRun(summary, short)] : []),
    ].map((advice) => stateAdviceLine(advice, paper.columns));
    await printLine(io, `${formatTaskSummary(summarizeTask(kept, task), task, paper)}\n${next.join('')}`);
  } else await printLine(io, showRunText(summary, kept, { paper, short }));
  return printJournalProblem(kept, io);
}

const isRunCancelled =
  (id: string) =>
  ({ task, status }: TaskRow): boolean =>
    task === id && status === 'cancelled';

type Telling = { readonly paper: Paper; readonly short: string };

/** The report of a run that ended, or the progress of one that did not. */
function showRunText(summary: RunSummary, kept: KeptRun, { paper, short }: Telling): string {
  const isOver = kept.state.end !== undefined && summary.state !== 'live' && kept.failure === undefined;
  if (isOver) return runReport(kept.state, paper, 'later');
  return `${formatRunSummary(summary, kept, paper)}\n${stateAdviceLine(nextStepOfRun(summary, short), paper.columns)}`;
}

async function showSessionCommand(kept: KeptSession, json: boolean, io: Io): Promise<number> {
  const redactor = await diagnosticsRedactor(io);
  const records = kept.records.map((record) => redactor.value(record));
  const summary = summarizeSession({ ...kept, records }, await readRunsOfSession(kept));
  if (summary !== undefined) {
    if (json) await printJsonLine(io, summary);
    else await printSession({ ...kept, records }, redactor.value(summary as never) as SessionSummary, io);
  }
  return printJournalProblem(kept, io);
}

async function readRunsOfSession({ home, id }: KeptSession): Promise<SessionSummary['runs']> {
  const runs = await SessionRuns.open(home, id);
  if (runs.count === 0) return undefined;
  const { cost } = await runs.spent();
  return { count: runs.count, ...(cost !== undefined && { cost }) };
}

async function printSession(kept: KeptSession, summary: SessionSummary, io: Io): Promise<void> {
  const paper = showPaper(io);
  await print(io.stdout, `${textForLog(formatSessionSummary(summary, paper), io.env)}\n`);
  const view = linesView(io.stdout, io.env, 'asked shown');
  if (kept.past !== undefined) {
    // The head shows model and folder already, so skip the first session_start. Later ones may differ.
    for (const [at, event] of listStoredEvents(kept).entries())
      if (at > 0 || event.type !== 'session_start') await view.show(event);
    await view.close();
    await print(io.stdout, '\n');
  }
  const short = shortenStoredId(kept.home, kept.id);
  const isGateRed = summary.state === 'incomplete' && failedGateOf(listStoredEvents(kept)) !== undefined;
  const next = nextStepOfSession(isGateRed ? 'done' : summary.state, short);
  await print(io.stdout, stateAdviceLine(next, paper.columns));
}

/** Prints the problem of a damaged journal last, so the user sees it. Returns the exit code. */
async function printJournalProblem({ failure, problem }: KeptJournal, io: Io): Promise<number> {
  if (failure === undefined) return exitCode.done;
  await printError(io, problem ?? '');
  return exitCodeOfFailure(failure);
}

function showPaper(io: Io): Paper {
  return { columns: terminalColumns(io.stdout), style: textStyle(io.stdout, io.env) };
}
