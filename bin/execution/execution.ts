// One agent at work: settings and a model become a session, its events a view, its ending an exit code.

import { join } from 'node:path';
import { refusedCalls } from '@drover/core/agent/calls';
import { STEPS_MAX_DEFAULT, TEXT_CALL_RETRIES_DEFAULT } from '@drover/core/agent/limits';
import { type Input, Session } from '@drover/core/agent/session';
import type { Store } from '@drover/core/bus';
import type { Past } from '@drover/core/journal/history';
import { sessionFolder } from '@drover/core/journal/session-journal';
import { factsOf, type Price } from '@drover/core/model/catalog';
import type { Provider } from '@drover/core/model/protocol';
import { defaultRetry } from '@drover/core/model/retry';
import type { TurnOutcome } from '@drover/core/outcome';
import type { Rule } from '@drover/core/permission/rules';
import { EventRedaction } from '@drover/core/redaction/event-redaction';
import { Redactor } from '@drover/core/redaction/redactor';
import { secretValues } from '@drover/core/redaction/secret-values';
import { builtinTools } from '@drover/core/tools/builtin';
import { endAllChildren } from '@drover/core/tools/child';
import { childEnvironment } from '@drover/core/tools/environment';
import type { Diagnostics } from '../diagnostics.ts';
import { codeOfEnding, codeOfStop, exitCode } from '../exit-code.ts';
import type { Io } from '../io.ts';
import type { Budget } from '../quantities.ts';
import { shortIdIn } from '../kept/kept-id.ts';
import type { Settings } from '../settings.ts';
import { watchForStop } from '../stop.ts';
import type { View } from '../views/view.ts';
import { gatesPass } from './gate.ts';
import { type ModelChoice, secretsOf } from './model-choice.ts';
import { openJournal } from './open-journal.ts';
import { openProvider } from './open-provider.ts';
import { permissionFor } from './permission.ts';
import { Person } from './person.ts';
import { priceOf } from './price.ts';
import { showAll } from './screen.ts';

export type Work = {
  readonly session: string; // its id; what it has been through is in its journal
  readonly input: Input;
  readonly cwd: string;
  readonly model: ModelChoice;
  readonly view: View;
  readonly rules: readonly Rule[];
  readonly yes: boolean;
  readonly gates: readonly string[];
  readonly turns: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly budget: Budget | undefined;
};

/** The world in which the work is done. */
export type Surroundings = { readonly settings: Settings; readonly diagnostics: Diagnostics; readonly io: Io };

export type Executed = { readonly code: number; readonly status: TurnOutcome['status'] };

export async function execute(work: Work, surroundings: Surroundings): Promise<Executed> {
  const { settings, diagnostics, io } = surroundings;
  const price = priceOf(work.model, work.budget, settings);
  const { session: id, model, cwd, view } = work;

  await using opened = new AsyncDisposableStack();
  const stop = opened.adopt(
    watchForStop(io, () => endAllChildren('SIGKILL')),
    ({ close }) => close(),
  );
  const person = opened.adopt(Person.at(io), (someone) => someone?.close());
  const { provider } = opened.adopt(await openProvider(model, settings), ({ close }) => close());
  const journal = await openJournal({ home: settings.home, session: id }, surroundings);
  const { store, past } = opened.adopt(journal, ({ close }) => close());

  const session = openSession(work, surroundings, { provider, price, person, store, past });
  diagnostics.diagnose('session opened', { session: id, model: model.label });
  const execution = session.execute(work.input, stop.signal);
  if (past !== undefined) {
    const short = shortIdIn(settings.home, id);
    await view.say(`going on with session ${short}: ${model.label} in ${cwd}`);
  }
  const [result] = await Promise.all([execution.result(), showAll(execution, { view, person, io })]);
  const { status } = result.outcome;
  diagnostics.diagnose('turn ended', { session: id, status });

  const code = codeOfEnding({ outcome: result.outcome, refused: refusedCalls(result).length > 0, stop: stop.cause() });
  if (code !== exitCode.done || (await gatesPass(work, io, stop.signal))) return { code, status };
  return { code: stop.signal.aborted ? codeOfStop(stop.cause()) : exitCode.gate, status };
}

type Opened = {
  readonly provider: Provider;
  readonly price: Price | undefined;
  readonly person: Person | undefined;
  readonly store: Store;
  readonly past: Past | undefined;
};

function openSession(work: Work, { settings, io }: Surroundings, opened: Opened): Session {
  const { provider, price, person, store, past } = opened;
  const { session: id } = work;
  const facts = factsOf(work.model.name);
  // Steps that were taken before are no reason to take none now.
  const stepsBefore = 'resume' in work.input ? (past?.steps ?? 0) : 0;
  const stepsMax = stepsBefore + (work.turns ?? settings.turns ?? STEPS_MAX_DEFAULT);
  const redaction = new EventRedaction(new Redactor([...secretValues(io.env), ...secretsOf(work.model)]));
  return new Session({
    id,
    worker: 0,
    provider,
    model: work.model.name,
    contextTokens: settings.contextTokens ?? facts.contextTokens,
    outputTokensMax: facts.outputTokensMax,
    ...(price !== undefined && { price }),
    ...(work.budget !== undefined && { cap: work.budget }),
    ...(settings.charsPerToken !== undefined && { charsPerToken: settings.charsPerToken }),
    tools: builtinTools,
    context: {
      cwd: work.cwd,
      env: childEnvironment(io.env),
      outputFolder: join(sessionFolder(settings.home, id), 'outputs'),
    },
    limits: {
      stepsMax,
      textCallRetriesMax: settings.textCallRetries ?? TEXT_CALL_RETRIES_DEFAULT,
      ...(work.timeoutMs !== undefined && { timeoutMs: work.timeoutMs }),
    },
    retry: defaultRetry,
    ...permissionFor(work, person),
    pass: (event, place) => redaction.pass(event, place),
    store,
    ...(past !== undefined && { past }),
  });
}
