// drover resume [id]: resumes an interrupted run or session.

import { UsageError } from '@drover/core/errors';
import { defineCommand, type Values } from '../start/command.ts';
import { agentOptions, runSessionAgent } from '../session/agent-options.ts';
import type { Io } from '../io.ts';
import { findRunOrSession, HOW_TO_BEGIN, type Kept, offerIdCompletions, shortenStoredId } from '../history/id.ts';
import { checkJournalUsable, listStoredEvents } from '../history/journal.ts';
import { failedGateOf, type KeptSession, readSessionState } from '../history/session.ts';
import { nextStepOfRun, nextStepOfSession } from '../history/state.ts';
import { runOptions, untypedRunArgs } from '../run/run-options.ts';
import { loadSettings, stateFolder } from '../start/settings.ts';
import { textOnOneLine } from '../views/text/terminal-text.ts';

const TITLE_COLUMNS = 40;

const { view: _, ...shared } = agentOptions;
const {
  view,
  result,
  junit,
  summary,
  workers,
  threads,
  queue,
  local,
  'allow-partial': allowPartial,
  'allow-red-base': redBase,
} = runOptions;

// Own help texts: limits of a run count from its start, limits of a session start anew.
const resumeOptions = {
  ...shared,
  cwd: { ...shared.cwd, about: 'Folder for a session (default: its own); a run stays in its repository' },
  timeout: { ...shared.timeout, about: 'Time limit, such as 30m; for a run, in total since it began' },
  budget: { ...shared.budget, about: 'Maximum to spend, such as 5usd; for a run, in total since it began' },
  gate: { ...shared.gate, about: 'Command that must pass, for a session; a run keeps its gates (repeatable)' },
  view,
  result,
  junit,
  summary,
  workers: { ...workers, group: 'Limits:', about: 'Number of tasks of a run to run at once (default: as before)' },
  threads: { ...threads, group: 'Limits:' },
  queue: { ...queue, about: 'For a run: place its tasks on the worker hosts at this Redis; pass it again each time' },
  local,
  'allow-partial': allowPartial,
  'allow-red-base': redBase,
};

export const resume = defineCommand({
  word: {
    name: 'id',
    about: 'Run or session: its id or a unique prefix (default: the newest interrupted one of this folder)',
    required: false,
    offered: offerIdCompletions,
  },
  options: resumeOptions,
  examples: [
    ['drover resume', 'Resume the newest run or session that is not done'],
    ['drover resume 1a2b3c --budget 10usd', 'Give more budget to a run that had spent it'],
    ['drover resume 1a2b3c --model openai/gpt-5', 'Resume with another model'],
    [`drover resume nightly --allow 'shell(pnpm *)'`, 'Pass the allow rules again each time'],
  ],
  async run(args, io) {
    const home = stateFolder(io);
    const { kind, id } =
      args.word === undefined ? await newestResumable(home, io.cwd) : await findRunOrSession(home, args.word);
    if (kind === 'session') return resumeSessionCommand(args, await readSessionState(home, id), io);
    if (args.cwd !== undefined) throw new UsageError('--cwd is for sessions; a run stays in its repository');
    if (args.gate.length > 0) throw new UsageError('--gate is for sessions; a run keeps its own');
    const { resumeRun } = await import('../run/resume-run.ts');
    return resumeRun({ ...untypedRunArgs(), ...args }, { id }, io);
  },
});

async function resumeSessionCommand(args: Values<typeof resumeOptions>, kept: KeptSession, io: Io): Promise<number> {
  const { queue: url, local: here, workers: many, threads: few, ...unplaced } = args;
  const { view: wanted, result: file, junit: xml, summary: report, ...rest } = unplaced;
  const { 'allow-partial': isPartly, ...others } = rest;
  const forRuns = {
    '--view dashboard': wanted === 'dashboard',
    '--result': file !== undefined,
    '--junit': xml !== undefined,
    '--summary': report !== undefined,
    '--workers': many !== undefined,
    '--threads': few !== undefined,
    '--queue': url !== undefined,
    '--local': here !== undefined,
    '--allow-partial': isPartly,
  };
  const stray = Object.entries(forRuns).find(([, isGiven]) => isGiven)?.[0];
  if (wanted === 'dashboard' || stray !== undefined)
    throw new UsageError(`${stray} is only for runs, and this is a session`);
  checkJournalUsable(kept);
  checkSessionResumable(kept);
  await checkResumedGates(kept, args, io);
  return runSessionAgent({ ...others, view: wanted }, kept, { resume: true }, io);
}

async function newestResumable(home: string, cwd: string): Promise<Kept> {
  const { isRowAtWork, isRowOf, listRunsAndSessions, wasRowInterrupted } = await import('../history/rows.ts');
  const rows = listRunsAndSessions(home);
  const [newest] = rows;
  if (newest === undefined) throw new UsageError(`there are no runs or sessions yet; ${HOW_TO_BEGIN}`);
  const open = rows.filter((row) => wasRowInterrupted(home, row));
  const here = open.find((row) => isRowOf(row, cwd));
  if (here !== undefined) return here;
  const [elsewhere] = open;
  if (elsewhere !== undefined) {
    const id = shortenStoredId(home, elsewhere.id);
    const title = textOnOneLine(elsewhere.title, TITLE_COLUMNS);
    throw new UsageError(
      `nothing was interrupted in this folder; in ${elsewhere.cwd ?? 'another one'} it was ${id} (${title}): drover resume ${id}`,
    );
  }
  const state = isRowAtWork(home, newest) ? 'live' : newest.state;
  const short = shortenStoredId(home, newest.id);
  const next = newest.kind === 'run' ? nextStepOfRun({ ...newest, state }, short) : nextStepOfSession(state, short);
  const which = `the newest is ${short} (${textOnOneLine(newest.title, TITLE_COLUMNS)}), which is ${state}`;
  throw new UsageError(`no run or session was interrupted; ${which}: ${next}`);
}

type GateArgs = Pick<Values<typeof resumeOptions>, 'gate' | 'trust-project'>;

/** A resume without gates would call a turn done whose gate failed. */
async function checkResumedGates({ id, home, past, records }: KeptSession, args: GateArgs, io: Io): Promise<void> {
  const command = failedGateOf(listStoredEvents({ records, live: false }));
  if (command === undefined || args.gate.length > 0) return;
  const trust = { trustsAll: args['trust-project'] };
  if ((await loadSettings(io, past?.cwd ?? io.cwd, trust)).gates.length > 0) return;
  const short = shortenStoredId(home, id);
  throw new UsageError(
    `the agent is done, and the gate '${command}' failed; ${nextStepOfSession('done', short)}, or test again with --gate`,
  );
}

function checkSessionResumable({ id, home, past }: KeptSession): void {
  const short = shortenStoredId(home, id);
  const more = nextStepOfSession('done', short);
  if (past === undefined || past.turn === 0) throw new UsageError(`nothing was asked in session ${short} yet; ${more}`);
  if (past.ending === 'done') throw new UsageError(`the last turn of session ${short} is done; ${more}`);
  const waiting = past.open?.pending ?? [];
  if (waiting.length > 0) {
    const calls = waiting.map(({ summary }) => summary).join(', ');
    throw new UsageError(`session ${short} waits for ${calls}; ${nextStepOfSession('suspended', short)}`);
  }
}
