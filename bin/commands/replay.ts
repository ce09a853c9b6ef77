// drover replay <id>: replays a run or session from its journal alone, and checks that it matches.
//
// For a session the agent loop runs again, with the recorded answers and results. For a run the recorded
// events are shown, at their own speed or faster.

import { UsageError } from '@drover/core/errors';
import { defineCommand, valueOption } from '../start/command.ts';
import { exitCodeOfStop, exitCode } from '../start/exit-code.ts';
import { printError, type Io } from '../io.ts';
import { findRunOrSession, offerIdCompletions } from '../history/id.ts';
import { checkJournalUsable, listStoredEvents } from '../history/journal.ts';
import { type KeptRun, readRunState } from '../history/run.ts';
import { type KeptSession, readSessionState } from '../history/session.ts';
import { readRecording } from '../replay/recording.ts';
import { stateFolder } from '../start/settings.ts';
import { type Stop, watchForStopSignal } from '../stop.ts';
import { countText } from '../views/text/figures.ts';
import { isViewPainted, openRunView, openView, runViewOptions } from '../views/view-choice.ts';
import type { View } from '../views/view.ts';

const SPEED_MAX = 1_000;

export const replay = defineCommand({
  word: {
    name: 'id',
    about: 'Run or session: its id or a unique prefix',
    required: true,
    offered: offerIdCompletions,
  },
  options: {
    ...runViewOptions,
    speed: valueOption(
      'Output:',
      'N',
      'Speed factor for a run; 0 shows all at once (default: 1 on the dashboard, else 0)',
      parseReplaySpeed,
    ),
  },
  examples: [
    ['drover replay 1a2b3c', 'Watch it again; exits with 0 if it matches the record, else 1'],
    ['drover replay 1a2b3c --speed 20', 'Watch a run at twenty times its speed'],
    ['drover replay nightly --view silent', 'Only check whether it matches'],
  ],
  async run({ word = '', speed, view, json }, io) {
    const home = stateFolder(io);
    const { kind, id } = await findRunOrSession(home, word);
    const stop = watchForStopSignal(io, () => undefined);
    try {
      if (kind === 'run')
        return await replayRunCommand(await readRunState(home, id), { speed, view, json }, { io, stop });
      if (view === 'dashboard' || speed !== undefined)
        throw new UsageError(
          `${view === 'dashboard' ? '--view dashboard' : '--speed'} is only for runs, and this is a session`,
        );
      return await replaySessionCommand(
        await readSessionState(home, id),
        () => openView({ view, json }, 'asked shown', io),
        {
          io,
          stop,
        },
      );
    } finally {
      stop.close();
    }
  },
});

function parseReplaySpeed(text: string): number {
  const speed = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (speed >= 0 && speed <= SPEED_MAX) return speed;
  throw new UsageError(`'${text}' is not a speed; write it like 0.5, 1 or 20, or 0 for all at once`);
}

type Around = { readonly io: Io; readonly stop: Stop };
type Wanted = Parameters<typeof openRunView>[0] & { readonly speed: number | undefined };

async function replayRunCommand(kept: KeptRun, { speed, ...wanted }: Wanted, { io, stop }: Around): Promise<number> {
  checkJournalUsable(kept);
  const { id, state } = kept;
  if (kept.past === undefined) throw new UsageError(`run ${id} has not begun, so there is nothing to replay`);
  const { replayContradiction, replayRunEvents, RecordedClock } = await import('../replay/run-performance.ts');
  const isPicture = isViewPainted(wanted, io);
  const clock = new RecordedClock(speed ?? (isPicture ? 1 : 0));
  const view = await openRunView(wanted, io, clock.now);
  const events = listStoredEvents(kept);
  // The dashboard stops at the first run_end, so it gets only the last one.
  const last = events.findLastIndex(({ type }) => type === 'run_end');
  const shown = isPicture ? events.filter(({ type }, at) => type !== 'run_end' || at === last) : events;
  await replayRunEvents(shown, { view, clock }, stop.signal);
  if (stop.signal.aborted) return exitCodeOfStop(stop.cause());
  if (state.end === undefined) await view.say('the run was interrupted here');
  return printReplayVerdict(replayContradiction(events), `the same as recorded: ${countText(events.length)} events`, {
    view,
    io,
  });
}

async function replaySessionCommand(
  kept: KeptSession,
  open: () => Promise<View>,
  { io, stop }: Around,
): Promise<number> {
  checkJournalUsable(kept);
  const { id, records, past } = kept;
  const recording = readRecording(records);
  if (past === undefined || recording.turns.length === 0)
    throw new UsageError(`nothing was asked in session ${id} yet, so there is nothing to replay`);
  const view = await open();
  const [{ replaySession }, { firstReplayDifference }] = await Promise.all([
    import('../replay/performance.ts'),
    import('../replay/comparison.ts'),
  ]);
  const performed = await replaySession({ recording, model: past.model, cwd: past.cwd, view }, stop.signal);
  if (stop.signal.aborted) return exitCodeOfStop(stop.cause());
  const same = `the same as recorded: ${countText(recording.messages.length)} messages`;
  return printReplayVerdict(await firstReplayDifference(recording, performed), same, { view, io });
}

async function printReplayVerdict(
  difference: string | undefined,
  same: string,
  { view, io }: { readonly view: View; readonly io: Io },
): Promise<number> {
  if (difference === undefined) {
    await view.say(same);
    return exitCode.done;
  }
  await printError(io, difference);
  return exitCode.internal;
}
