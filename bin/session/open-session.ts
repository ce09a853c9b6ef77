// Opens a session with settings, a model and its journal, and with a way to ask the user.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { STEPS_MAX_DEFAULT, TEXT_CALL_RETRIES_DEFAULT } from '@drover/core/agent/limits';
import { Session } from '@drover/core/session/session';
import type { SessionOptions } from '@drover/core/session/session-options';
import { type SessionJournal, sessionFolder } from '@drover/core/journal/session-journal';
import { modelFactsOf, type Price } from '@drover/core/model/catalog';
import type { Message } from '@drover/protocol/messages';
import type { Provider } from '@drover/core/model/provider';
import type { Sampling } from '@drover/protocol/model';
import { defaultRetry } from '@drover/core/model/retry';
import type { Spent } from '@drover/core/model/spending/spent';
import { pathsDeniedIn } from '@drover/core/permission/denied-paths';
import type { Rule } from '@drover/core/permission/rules';
import { EventRedaction } from '@drover/core/redaction/event-redaction';
import { removeLeftoverFiles } from '@drover/core/tools/files/leftovers';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { servedTools } from '@drover/core/tools/served/served';
import type { Extensions } from '@drover/core/hooks/extensions';
import { callHooks } from '@drover/core/hooks/call-hooks';
import type { HookPlace } from '@drover/core/hooks/run-hook';
import type { Tool } from '@drover/core/tools/tool';
import type { Contained } from '@drover/coordinator/slots/containment';
import type { Event, NetworkEvent } from '@drover/protocol/events';
import type { Mode } from '../chat/mode.ts';
import { printError, type Io } from '../io.ts';
import type { Budget } from '../start/quantities.ts';
import type { Containment } from '../sandbox/containment.ts';
import { openSecretRedactor } from '../secrets/own-secrets.ts';
import type { Settings } from '../start/settings.ts';
import type { Surroundings } from './execution.ts';
import type { ModelChoice } from '../model/model-choice.ts';
import { type OpenServers, openMcpServers, type ServerHub } from '../mcp/open-servers.ts';
import type { ServerSources } from '../mcp/server-list.ts';
import { type SessionAsked, terminalPermission } from '../terminal/permission.ts';

export type SessionWork = {
  readonly session: string; // its id; its history is in its journal
  readonly cwd: string;
  readonly model: ModelChoice;
  readonly rules: readonly Rule[];
  readonly yes: boolean;
  readonly gates: readonly string[];
  readonly steps: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly budget: Budget | undefined;
  readonly containment: Containment;
  readonly servers: ServerSources;
  /** MCP servers that this process has already. */
  readonly hub?: ServerHub;
  readonly extensions: Extensions;
};

export type Opened = Pick<SessionJournal, 'store' | 'past'> & {
  readonly provider: Provider;
  readonly price: Price | undefined;
  readonly asked: SessionAsked;
  readonly tools: readonly Tool[];
  readonly servers: OpenServers;
  readonly remoteTimeoutMs: number | undefined;
  /** First messages of a new session. */
  readonly opening?: readonly Message[];
  readonly sampling?: Sampling;
  readonly check?: SessionOptions['check'];
  /** Contains its commands; undefined if they run without a sandbox. */
  readonly contained: Contained | undefined;
  /** Paths that git runs something from; the file tools ask before they change them. */
  readonly runLater: readonly string[];
  /** Spending before the session was opened; counts against the budget. */
  readonly spentBefore?: Spent;
  /** Mode of a chat, asked before each call. */
  readonly mode?: () => Mode;
  /** Called before a call runs that may change files. */
  readonly beforeCall?: SessionOptions['beforeCall'];
  /** Steps of the resumed turn that don't count against the limit. */
  readonly stepsBefore: number;
};

/** Opens the sandbox of a session. Connections before `tellTo` are not reported. */
export async function containSession(
  { containment, cwd, rules, session: id }: SessionWork,
  home: string,
): Promise<SessionBox> {
  let tell: (event: NetworkEvent) => void = () => undefined;
  const folder = join(sessionFolder(home, id), 'box');
  const runLater = await containment.runLater(cwd);
  const place = { root: cwd, folder, rules, runLater };
  const contained = await containment.folder?.({ ...place, onConnection: (event) => tell(event) });
  const cleared = removeLeftoverFiles(cwd); // runs in the background; the session never uses these files
  return {
    contained,
    runLater,
    tellTo: (session) => (tell = (event) => session.bus.emit(event, {})),
    async close() {
      await cleared;
      tell = () => undefined; // nothing follows the end of a session
      await contained?.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Opens the MCP servers of a session, and tells the user what was left out. */
export async function openSessionServers(
  work: SessionWork,
  { settings, io, diagnostics }: Surroundings,
): Promise<OpenServers> {
  const { cwd: top, rules, containment, servers: sources, model, hub } = work;
  const contextTokens = settings.contextTokens ?? modelFactsOf(model.name).contextTokens;
  const wish = { settings, top, rules, containment, sources, contextTokens, frozenAt: undefined, hub };
  const servers = await openMcpServers(wish, { io, diagnose: diagnostics.diagnose });
  for (const warning of servers.warnings) await printError(io, warning);
  return servers;
}

type SessionBox = {
  readonly contained: Contained | undefined;
  readonly runLater: readonly string[];
  readonly tellTo: (session: Session) => void;
  readonly close: () => Promise<void>;
};

/** Skills and hooks of calls, as options of a session. */
function sessionExtensions(
  { extensions, session }: SessionWork,
  place: HookPlace,
): Pick<SessionOptions, 'skills' | 'hooks'> {
  const hooks = callHooks(extensions.hooks, session, place);
  return { skills: extensions.skills, ...(hooks !== undefined && { hooks }) };
}

export function openSessionAtWork(
  work: SessionWork,
  place: { readonly settings: Settings; readonly io: Io },
  opened: Opened,
) {
  const { settings, io } = place;
  const { provider, price, asked, store, past, tools, remoteTimeoutMs, spentBefore, stepsBefore } = opened;
  const { contained, runLater } = opened;
  const { session: id } = work;
  const facts = modelFactsOf(work.model.name);
  const redaction = new EventRedaction(openSecretRedactor(settings));
  // It is called after the session was made.
  const emit = (event: Event) => session.bus.emit(event, {});
  const sandbox = contained?.policy;
  const line = opened.servers.lineFor({ cwd: work.cwd, sandbox, emit, question: asked.ask });
  const env = childProcessEnvironment(io.env);
  const session: Session = new Session({
    id,
    worker: 0,
    provider,
    model: work.model.name,
    contextTokens: settings.contextTokens ?? facts.contextTokens,
    outputTokensMax: facts.outputTokensMax,
    ...(price !== undefined && { price }),
    ...(work.budget !== undefined && { cap: work.budget }),
    ...(spentBefore !== undefined && { spentBefore }),
    ...(settings.charsPerToken !== undefined && { charsPerToken: settings.charsPerToken }),
    tools: [...tools, ...servedTools(opened.servers.tools, line.call)],
    ...sessionExtensions(work, { cwd: work.cwd, env, sandbox }),
    ...(remoteTimeoutMs !== undefined && { remoteTimeoutMs }),
    ...(opened.opening !== undefined && { opening: opened.opening }),
    ...(opened.sampling !== undefined && { sampling: opened.sampling }),
    ...(opened.check !== undefined && { check: opened.check }),
    context: {
      cwd: work.cwd,
      env,
      ignore: settings.ignore,
      outputFolder: join(sessionFolder(settings.home, id), 'outputs'),
      ...(contained !== undefined && { sandbox: contained.policy }),
      ...pathsDeniedIn(work.rules, work.cwd),
    },
    sandbox: contained === undefined && work.containment.use.used !== 'off' ? 'none' : work.containment.use.used,
    limits: {
      stepsMax: stepsBefore + (work.steps ?? settings.steps ?? STEPS_MAX_DEFAULT),
      textCallRetriesMax: settings.textCallRetries ?? TEXT_CALL_RETRIES_DEFAULT,
      ...(work.timeoutMs !== undefined && { timeoutMs: work.timeoutMs }),
    },
    retry: defaultRetry,
    ...terminalPermission(
      { ...work, contained: contained !== undefined, runLater, ...(opened.mode && { mode: opened.mode }) },
      asked,
    ),
    ...(opened.beforeCall !== undefined && { beforeCall: opened.beforeCall }),
    pass: (event, moment) => redaction.pass(event, moment),
    store,
    ...(past !== undefined && { past }),
  });
  return session;
}
