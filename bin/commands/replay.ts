// drover replay <id>: a session again, from its journal, to see whether it goes as it went.

import { UsageError } from '@drover/core/failure';
import { command } from '../command.ts';
import { codeOfStop, exitCode } from '../exit-code.ts';
import { print } from '../io.ts';
import { recordingOf } from '../replay/recording.ts';
import { checkUsable, readSession } from '../sessions/kept-session.ts';
import { findSession, offeredIds } from '../sessions/session-id.ts';
import { stateFolder } from '../settings.ts';
import { watchForStop } from '../stop.ts';
import { count } from '../views/figures.ts';
import { clean } from '../views/terminal-text.ts';
import { openView, viewOptions } from '../views/view-choice.ts';

export const replay = command({
  word: { name: 'id', about: 'The session, or as much of its id as is unique', required: true, offered: offeredIds },
  options: viewOptions,
  examples: [
    ['drover replay 1a2b3c', 'Watch it again; 0 if it goes as it went, 1 if not'],
    ['drover replay nightly --view silent', 'Only whether it does'],
  ],
  async run({ word = '', ...chosen }, io) {
    const home = stateFolder(io);
    const kept = await readSession(home, findSession(home, word));
    checkUsable(kept);
    const { id, records, past } = kept;
    const recording = recordingOf(records);
    if (past === undefined || recording.turns.length === 0)
      throw new UsageError(`nothing was asked in session ${id} yet, so there is nothing to replay`);
    const view = await openView(chosen, 'asked shown', io);
    const stop = watchForStop(io, () => undefined);
    try {
      const [{ perform }, { firstDifference }] = await Promise.all([
        import('../replay/performance.ts'),
        import('../replay/comparison.ts'),
      ]);
      const performed = await perform({ recording, model: past.model, cwd: past.cwd, view }, stop.signal);
      if (stop.signal.aborted) return codeOfStop(stop.cause());
      const difference = await firstDifference(recording, performed);
      if (difference === undefined) {
        await view.say(`the same as recorded: ${count(recording.messages.length)} messages`);
        return exitCode.done;
      }
      await print(io.stderr, `${clean(`drover: ${difference}`)}\n`);
      return exitCode.internal;
    } finally {
      stop.close();
    }
  },
});
