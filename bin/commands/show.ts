// drover show <id>: what became of a session: its figures, the conversation told again, how to go on.

import { command, flag } from '../command.ts';
import { codeOfFailure, exitCode } from '../exit-code.ts';
import { type Io, print } from '../io.ts';
import { eventsIn, type KeptSession, readSession } from '../sessions/kept-session.ts';
import { findSession, offeredIds, sessionIds, shortId } from '../sessions/session-id.ts';
import { headOf, summaryOf, type SessionSummary } from '../sessions/session-summary.ts';
import { nextStep } from '../sessions/state.ts';
import { stateFolder } from '../settings.ts';
import { linesView } from '../views/lines.ts';
import { styleFor } from '../views/style.ts';
import { clean, columnsOf } from '../views/terminal-text.ts';
import { wrapped } from '../views/word-wrap.ts';

export const show = command({
  word: { name: 'id', about: 'The session, or as much of its id as is unique', required: true, offered: offeredIds },
  options: { json: flag('Options:', 'For programs: one JSON object that sums it up') },
  examples: [
    ['drover show 1a2b3c', 'What was said and done, and how to go on'],
    ['drover show nightly --json', 'The figures, for a script'],
  ],
  async run({ word = '', json }, io) {
    const home = stateFolder(io);
    const kept = await readSession(home, findSession(home, word));
    const summary = summaryOf(kept);
    if (summary !== undefined) {
      if (json) await print(io.stdout, `${JSON.stringify(summary)}\n`);
      else await tell(kept, summary, io);
    }
    if (kept.failure === undefined) return exitCode.done;
    await print(io.stderr, `${clean(`drover: ${kept.problem}`)}\n`);
    return codeOfFailure(kept.failure);
  },
});

async function tell(kept: KeptSession, summary: SessionSummary, io: Io): Promise<void> {
  const columns = columnsOf(io.stdout);
  const style = styleFor(io.stdout, io.env);
  await print(io.stdout, `${headOf(summary, columns, style)}\n`);
  const view = linesView(io.stdout, io.env, 'asked shown');
  if (kept.past !== undefined) {
    // The head has said which model and where, unless another went on later.
    for (const [at, event] of eventsIn(kept.records).entries())
      if (at > 0 || event.type !== 'session_start') await view.show(event);
    await view.close();
    await print(io.stdout, '\n');
  }
  const short = shortId(kept.id, sessionIds(kept.home));
  await print(io.stdout, `${wrapped(nextStep(summary.state, short), columns)}\n`);
}
