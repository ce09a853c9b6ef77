// drover resume [id]: go on with a session that was interrupted, where it was.

import { UsageError } from '@drover/core/failure';
import { isLive, listSessions, type SessionRow } from '@drover/core/journal/sessions';
import { command } from '../command.ts';
import { agentOptions, runAgent } from '../execution/agent-options.ts';
import { resumeRun } from '../run/resume-run.ts';
import { runMeant } from '../run/run-id.ts';
import { runOptions, untyped } from '../run/run-options.ts';
import { checkUsable, type KeptSession, readSession } from '../sessions/kept-session.ts';
import { findSession, HOW_TO_BEGIN, offeredIds, sessionIds, shortId } from '../sessions/session-id.ts';
import { nextStep } from '../sessions/state.ts';
import { stateFolder } from '../settings.ts';
import { oneLine } from '../views/terminal-text.ts';

const TITLE_COLUMNS = 40;

const { view: _, ...shared } = agentOptions;
const { view, result, 'allow-partial': allowPartial } = runOptions;
const resumeOptions = { ...shared, view, result, 'allow-partial': allowPartial };

export const resume = command({
  word: {
    name: 'id',
    about: 'The session, or as much of its id as is unique; without it, the newest that was interrupted',
    required: false,
    offered: offeredIds,
  },
  options: resumeOptions,
  examples: [
    ['drover resume', 'Go on with the newest session that is not done'],
    ['drover resume 1a2b3c --model openai/gpt-5', 'Go on with another model'],
    [`drover resume nightly --allow 'shell(pnpm *)'`, 'Rules and limits are given anew each time'],
  ],
  async run(args, io) {
    const home = stateFolder(io);
    const run = runMeant(home, args.word);
    if (run !== undefined) return resumeRun({ ...untyped(), ...args }, run, io);
    if (args.view === 'dashboard') throw new UsageError('--view dashboard is for runs; a session has lines');
    const { view, ...others } = args;
    const kept = await readSession(home, args.word === undefined ? newestOpen(home) : findSession(home, args.word));
    checkUsable(kept);
    checkOpen(kept);
    return runAgent({ ...others, view }, kept, { resume: true }, io);
  },
});

const CAN_GO_ON: ReadonlySet<SessionRow['state']> = new Set(['open', 'incomplete', 'error', 'cancelled']);

function newestOpen(home: string): string {
  const rows = listSessions(home);
  const [newest] = rows;
  if (newest === undefined) throw new UsageError(`there are no sessions yet; ${HOW_TO_BEGIN}`);
  const open = rows.find(({ id, state }) => CAN_GO_ON.has(state) && !isLive(home, id));
  if (open !== undefined) return open.id;
  const state = isLive(home, newest.id) ? 'live' : newest.state;
  const short = shortId(newest.id, sessionIds(home));
  const which = `the newest is ${short} (${oneLine(newest.title, TITLE_COLUMNS)}), which is ${state}`;
  throw new UsageError(`no session was interrupted; ${which}: ${nextStep(state, short)}`);
}

function checkOpen({ id, home, past }: KeptSession): void {
  const short = shortId(id, sessionIds(home));
  const more = nextStep('done', short);
  if (past === undefined || past.turn === 0) throw new UsageError(`nothing was asked in session ${short} yet; ${more}`);
  if (past.ending === 'done') throw new UsageError(`the last turn of session ${short} is done; ${more}`);
  const waiting = past.open?.pending ?? [];
  if (waiting.length > 0) {
    const calls = waiting.map(({ summary }) => summary).join(', ');
    throw new UsageError(`session ${short} waits for ${calls}; ${nextStep('suspended', short)}`);
  }
}
