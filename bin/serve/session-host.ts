// A session of the server, opened at its journal: drover's own tools, and those that its client runs.

import { UsageError } from '@drover/core/errors';
import { spentIn } from '@drover/core/model/spending/spent';
import { Questions } from '@drover/core/permission/questions';
import { sessionTools } from '@drover/core/tools/builtin';
import { remoteTool } from '@drover/core/tools/remote';
import { skillTools } from '@drover/core/tools/skill';
import type { HostedSession, SessionWanted } from '@drover/server/host';
import { chooseModel, modelInFolder } from '../model/model-choice.ts';
import { openJournalOfSession } from '../session/open-journal.ts';
import { openProvider } from '../model/open-provider.ts';
import { containSession, openSessionAtWork, openSessionServers } from '../session/open-session.ts';
import { findModelPrice } from '../model/price.ts';
import { loadExtensions } from '../extensions/load.ts';
import { findTrustProject } from '../trust/open-project.ts';
import { loadSettings, ONLY_APPROVED, type Settings, stateFolder } from '../start/settings.ts';
import type { ServeWishes } from './wishes.ts';

export async function serveSession(
  { id, begin, model: wanted }: SessionWanted,
  wishes: ServeWishes,
): Promise<HostedSession> {
  const { io, diagnostics, budget } = wishes;
  await using opened = new AsyncDisposableStack();
  if (begin !== undefined) await servedSessionModel(begin.model, begin.cwd, wishes);
  const journal = opened.adopt(
    await openJournalOfSession({ home: stateFolder(io), session: id }, { diagnostics, io }),
    (each) => each.close(),
  );
  const { past } = journal;
  const cwd = begin?.cwd ?? past?.cwd;
  if (cwd === undefined) throw new UsageError(`nothing is known of session ${id}`);
  const settings = await loadSettings(io, cwd);
  const model =
    past === undefined || wanted !== undefined
      ? await servedSessionModel(wanted ?? begin?.model, cwd, wishes)
      : chooseModel(past.model, settings, cwd);
  const sampling = begin?.options ?? past?.options;
  const { provider } = opened.adopt(await openProvider(model, settings, diagnostics), ({ close }) => close());
  // Questions become events one after the other; any client may answer.
  const questions = opened.adopt(new Questions(() => undefined), (each) => each.close());
  const work = { session: id, cwd, model, ...(await servedSessionWishes(cwd, settings, wishes)) };
  const box = opened.adopt(await containSession(work, settings.home), (each) => each.close());
  const servers = opened.adopt(await openSessionServers(work, { settings, io, diagnostics }), (each) => each.close());
  const session = openSessionAtWork(
    work,
    { settings, io },
    {
      provider,
      contained: box.contained,
      runLater: box.runLater,
      price: findModelPrice(model, budget, settings),
      asked: { remembered: questions.remembered, ask: (...asked) => questions.askOrLeave(...asked) },
      store: journal.store,
      past,
      servers,
      tools: [
        ...sessionTools,
        ...(begin === undefined ? (past?.remoteTools ?? []) : (begin.tools ?? [])).map(remoteTool),
        ...skillTools(work.extensions.skills),
      ],
      remoteTimeoutMs: begin?.remoteTimeoutMs ?? past?.remoteTimeoutMs,
      ...(begin !== undefined && { opening: begin.messages }),
      ...(sampling !== undefined && { sampling }),
      // The session is closed while it rests: its budget outlives that.
      ...(past !== undefined && { spentBefore: spentIn(past) }),
      stepsBefore: 0,
    },
  );
  box.tellTo(session);
  const kept = opened.move();
  return { session, questions, close: () => kept.disposeAsync() };
}

/** Combines the flags of the server with the configs of the folder. */
async function servedSessionWishes(cwd: string, settings: Settings, wishes: ServeWishes) {
  const { rules, gates } = settings;
  const { yes, steps, budget, containment, io, mcp: files, hub } = wishes;
  const project = await findTrustProject(io, cwd, ONLY_APPROVED);
  const extensions = await loadExtensions(project, settings, io);
  const servers = { project, files };
  const limits = { steps, timeoutMs: undefined, budget };
  return { rules: [...rules, ...wishes.rules], yes, gates, ...limits, containment, servers, hub, extensions };
}

async function servedSessionModel(wanted: string | undefined, cwd: string, { io, model }: ServeWishes) {
  const settings = await loadSettings(io, cwd);
  return modelInFolder(chooseModel(wanted ?? model, settings, io.cwd), { from: io.cwd, to: cwd });
}
