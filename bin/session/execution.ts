// Runs one agent: opens a session with settings and a model, shows its events, and returns an exit code.

import type { Input } from '@drover/core/session/execution';
import type { TurnOutcome } from '@drover/protocol/outcomes';
import { sessionTools } from '@drover/core/tools/builtin';
import { skillTools } from '@drover/core/tools/skill';
import { endAllChildProcesses } from '@drover/core/tools/process/child';
import type { Diagnostics } from '../diagnostics.ts';
import { exitCodeOfEnding } from '../start/exit-code.ts';
import type { Io } from '../io.ts';
import { shortenStoredId } from '../history/id.ts';
import { diagnoseSandbox } from '../sandbox/containment.ts';
import type { Settings } from '../start/settings.ts';
import { watchForStopSignal } from '../stop.ts';
import type { View } from '../views/view.ts';
import { Gates } from './gate.ts';
import { openJournalOfSession } from './open-journal.ts';
import { openProvider } from '../model/open-provider.ts';
import { containSession, openSessionAtWork, openSessionServers, type SessionWork } from './open-session.ts';
import { terminalQuestions } from '../terminal/permission.ts';
import { Person } from '../terminal/person.ts';
import { findModelPrice } from '../model/price.ts';
import { showEventsOnTerminal } from '../terminal/show-events.ts';

export type Work = SessionWork & { readonly input: Input; readonly view: View };

/** The settings, diagnostics and streams that a session uses. */
export type Surroundings = { readonly settings: Settings; readonly diagnostics: Diagnostics; readonly io: Io };

export type Executed = { readonly code: number; readonly status: TurnOutcome['status'] };

export async function executeSession(work: Work, surroundings: Surroundings): Promise<Executed> {
  const { settings, io } = surroundings;
  const price = findModelPrice(work.model, work.budget, settings);
  const { session: id, model, cwd, view } = work;
  const diagnostics = surroundings.diagnostics.about({ session: id });

  await using opened = new AsyncDisposableStack();
  const stop = opened.adopt(
    watchForStopSignal(io, () => endAllChildProcesses('SIGKILL')),
    ({ close }) => close(),
  );
  const person = opened.adopt(Person.at(io), (someone) => someone?.close());
  const { provider } = opened.adopt(await openProvider(model, settings, diagnostics), ({ close }) => close());
  const journal = await openJournalOfSession({ home: settings.home, session: id }, { diagnostics, io });
  const { store, past } = opened.adopt(journal, ({ close }) => close());

  const box = opened.adopt(await containSession(work, settings.home), (each) => each.close());
  const { contained } = box;
  const servers = opened.adopt(await openSessionServers(work, surroundings), (each) => each.close());
  const gates = new Gates({ gates: work.gates, cwd, sandbox: contained?.policy }, io);
  const session = openSessionAtWork(work, surroundings, {
    provider,
    contained,
    runLater: box.runLater,
    price,
    asked: terminalQuestions(person),
    check: (emit, signal) => gates.check(emit, signal),
    store,
    past,
    tools: [...sessionTools, ...skillTools(work.extensions.skills)],
    servers,
    remoteTimeoutMs: undefined,
    // A resumed turn gets its full number of steps again.
    stepsBefore: 'resume' in work.input ? (past?.steps ?? 0) : 0,
  });
  box.tellTo(session);
  diagnoseSandbox(work.containment, diagnostics);
  diagnostics.diagnose('session opened', { model: model.label }, 'info');
  const execution = session.execute(work.input, stop.signal);
  if (past !== undefined) {
    const short = shortenStoredId(settings.home, id);
    await view.say(`resuming session ${short}: ${model.label} in ${cwd}`);
  }
  const [result] = await Promise.all([execution.result(), showEventsOnTerminal(execution, { view, person, io })]);
  const { status } = result.outcome;
  diagnostics.diagnose('turn ended', { status }, 'info');

  const code = exitCodeOfEnding({ outcome: result.outcome, refused: result.refused.length > 0, stop: stop.cause() });
  await gates.tellFailure();
  return { code, status };
}
