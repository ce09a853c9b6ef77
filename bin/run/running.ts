// Executes a run: opens the coordinator and its workers, shows their events, and returns how the run ended.

import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { RunAdmission } from '@drover/coordinator/admission/admission';
import { NOTHING_SPENT } from '@drover/coordinator/admission/purse';
import type { KnownResult } from '@drover/coordinator/run/execute';
import type { Limiter } from '@drover/coordinator/run/dispatch';
import type { Git } from '@drover/coordinator/git/git';
import { RunControl } from '@drover/coordinator/control/run-control';
import { openPool } from '@drover/coordinator/pool/pool';
import type { RunHistory } from '@drover/coordinator/run/history';
import type { Repository } from '@drover/coordinator/git/repository';
import type { RunEnd } from '@drover/coordinator/run/end';
import type { ApprovePlan } from '@drover/coordinator/plan/approval';
import { run } from '@drover/coordinator/run/run';
import { type ReadRun, readRunRecords, runFolder } from '@drover/coordinator/run/journal';
import type { Fleet } from '@drover/hosts/placing/fleet';
import type { Dependencies } from '@drover/coordinator/dependencies/bring';
import { Slots, type Workspaces } from '@drover/coordinator/slots/slots';
import type { Bus } from '@drover/core/bus';
import type { Diagnose } from '@drover/core/diagnosis';
import type { Pot } from '@drover/core/model/spending/budget';
import { modelFactsOf } from '@drover/core/model/catalog';
import { defaultRetry } from '@drover/core/model/retry';
import type { Rule } from '@drover/core/permission/rules';
import type { Redactor } from '@drover/core/redaction/redactor';
import type { RunSettings } from '@drover/protocol/run';
import type { ToolServers } from '@drover/core/tools/served/tool-servers';
import type { Extensions } from '@drover/core/hooks/extensions';
import type { RunTask } from '@drover/core/task/task';
import type { Message } from '@drover/protocol/messages';
import type { PlannedTask } from '@drover/protocol/plan';
import { endAllChildProcesses } from '@drover/core/tools/process/child';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import type { Surroundings } from '../session/execution.ts';
import type { RunChoices } from '../model/model-roles.ts';
import { type LaneOf, type OpenedModels, openModelByLabel, openModels } from '../model/open-models.ts';
import { type Asked, terminalQuestions } from '../terminal/permission.ts';
import { Person } from '../terminal/person.ts';
import { showEventsOnTerminal } from '../terminal/show-events.ts';
import { workerEntry } from './worker-entry.ts';
import { exitCodeOfRun } from '../start/exit-code.ts';
import { openSecretRedactor } from '../secrets/own-secrets.ts';
import { watchForStopSignal } from '../stop.ts';
import { type Containment, diagnoseSandbox } from '../sandbox/containment.ts';
import { jsonViewText } from '../views/json.ts';
import type { RunView } from '../views/view.ts';
import { sendRunTelemetry } from '../telemetry/live.ts';
import { traceEnvironment } from '../telemetry/trace-env.ts';
import { openPlanApproval } from './plan/approval.ts';
import type { ServerSources } from '../mcp/server-list.ts';
import { openMcpServers, type ServerHub, type ServersWish } from '../mcp/open-servers.ts';
import { findRemote, loadHostedWorkspaces, type HostsWish, openFleet } from '../hosts/open-fleet.ts';
import { openLauncher, type RunLauncher } from './open-launcher.ts';
import { openRunBus, openRunBusJournal } from './open-run.ts';
import { runDesk } from './run-desk.ts';

export type RunWork = {
  readonly id: string;
  readonly settings: RunSettings;
  readonly repository: Repository;
  readonly models: RunChoices;
  readonly plan: readonly PlannedTask[] | undefined;
  /** The conversation that its coordinator begins with. */
  readonly opening?: readonly Message[];
  /** Its journal as it was read, if the run is resumed. */
  readonly read?: ReadRun;
  /** Worker hosts, if it has any. */
  readonly hosts?: HostsWish;
  readonly view: RunView;
  readonly rules: readonly Rule[];
  readonly yes: boolean;
  readonly containment: Containment;
  readonly mayBePartial: boolean;
  /** Where MCP servers are named; absent where none are used. */
  readonly servers?: ServerSources;
  /** MCP servers that this process has already. */
  readonly hub?: ServerHub;
  readonly result: string | undefined; // a file
  readonly extensions: Extensions;
  readonly companion?: Companion;
  readonly shared?: Shared;
  /** Answers questions in place of the user at the terminal. */
  readonly asked?: Asked;
  /** Asks for approval of plans in place of the user at the terminal. */
  readonly approve?: ApprovePlan;
  /** Lets others than the view ask something of the run while it works. */
  readonly control?: RunControl;
  /** Gives other readers than the view access to the bus. */
  readonly onBus?: (bus: Bus) => void;
};

/** Resources that the concurrent runs of a batch over several repositories share. The batch owns them. */
export type Shared = {
  readonly pot?: Pot;
  readonly team?: Team;
};

export type Team = {
  readonly limit: Limiter;
  readonly workers: Workers;
  readonly laneOf: LaneOf;
};

/** Hooks that a batch or a report adds to its run. */
export type Companion = {
  /** Results of its tasks that are known before the run begins. */
  readonly known: (store: Git, signal: AbortSignal) => Promise<ReadonlyMap<string, KnownResult>>;
  readonly ended: (end: RunEnd, left: LeftBehind) => Promise<void>;
};

type LeftBehind = {
  readonly git: Git;
  readonly redactor: Redactor;
  /** Hides exact values only: a token pattern in a patch may be intended. */
  readonly values: Redactor;
  readonly startedAt: string;
};

/** Executes the run and returns its end. Closes all that it opened, also if it throws. */
export async function carryRun(work: RunWork, surroundings: Surroundings): Promise<RunEnd> {
  const { settings: config, io } = surroundings;
  const { id, view } = work;
  const diagnostics = surroundings.diagnostics.about({ run: id });
  await using opened = new AsyncDisposableStack();
  const control = work.control ?? new RunControl();
  const parts = { ...(await openRunParts(work, { ...surroundings, diagnostics }, opened)), control };
  const { bus, past, person, redactor, slots, stop, workers } = parts;
  diagnoseSandbox(work.containment, diagnostics);
  diagnostics.diagnose('run opened', { models: [...work.models.chosen.keys()] }, 'info');

  view.operate?.(runDesk({ id, settings: config, io, control, bus, redactor, stop }));
  for (const record of past?.records ?? []) view.recall?.(record);
  const known = (await work.companion?.known(slots.store.git, stop.signal)) ?? new Map<string, KnownResult>();
  const startedAt = past?.startedAt ?? new Date().toISOString();
  const endTelemetry = await sendRunTelemetry(bus, past?.records ?? [], io);
  const shown = showEventsOnTerminal(bus.reader(), { view, person, io });
  const hosted = await hostedRunOptions(work, parts, startedAt);
  const ended = run({ ...runOptions(work, surroundings, parts), ...hosted, known }, stop.signal).finally(() => {
    bus.close();
    // Close the workers while the view shows the last events.
    void workers.close();
  });
  const [end] = await Promise.all([ended, shown]);
  await endTelemetry();
  if (parts.fleet !== undefined) parts.fleet.isOver = end.outcome === 'done';
  diagnostics.diagnose('run ended', { outcome: end.outcome, exitCode: end.exitCode }, 'info');
  await work.companion?.ended(end, {
    git: slots.store.git,
    redactor,
    values: openSecretRedactor(config, 'values only'),
    startedAt,
  });
  if (work.result !== undefined)
    await writeRunResult(resolve(io.cwd, work.result), id, redactor.value(end as never) as RunEnd);
  return end;
}

/** Everything that a run needs open. */
type RunParts = {
  readonly settings: RunSettings;
  readonly repository: Repository;
  readonly env: Readonly<Record<string, string>>;
  readonly stop: ReturnType<typeof watchForStopSignal>;
  readonly workers: Workers;
  readonly person: Person | undefined;
  readonly opened: OpenedModels;
  readonly past: RunHistory | undefined;
  readonly slots: Slots;
  readonly redactor: Redactor;
  readonly bus: Bus;
  readonly servers: ToolServers;
  readonly fleet: OpenFleet | undefined;
  readonly control: RunControl;
};

type OpenFleet = { readonly fleet: Fleet; isOver: boolean };

async function openRunParts(
  work: RunWork,
  surroundings: Surroundings,
  opened: AsyncDisposableStack,
): Promise<Omit<RunParts, 'control'>> {
  const { settings: config, io, diagnostics } = surroundings;
  const { id, containment } = work;
  const settings = { ...work.settings, sandbox: containment.use };
  const repository = { ...work.repository, identity: settings.author ?? work.repository.identity };
  const team = work.shared?.team;
  const env = { ...childProcessEnvironment(io.env), ...traceEnvironment(id, settings, io.env) };
  const launcher = opened.adopt(team === undefined && settings.workers > 1 ? openLauncher(env) : undefined, (each) =>
    each?.close(),
  );
  const stop = opened.adopt(
    watchForStopSignal(io, () => {
      launcher?.kill();
      endAllChildProcesses('SIGKILL');
    }),
    ({ close }) => close(),
  );
  // Open the pool first, so its threads start while the rest opens. It closes before the resources its tasks use.
  const here = { workers: work.hosts?.local ?? settings.workers, threads: config.threads };
  const workers = opened.adopt(team?.workers ?? (await openRunWorkers(here, { ...surroundings, launcher })), (each) =>
    each.close(),
  );
  const person = opened.adopt(Person.at(io), (someone) => someone?.close());
  const opening = { settings: config, diagnostics, workers: settings.workers, laneOf: team?.laneOf };
  const models = opened.adopt(await openModels(work.models, opening), ({ close }) => close());
  const place = { home: config.home, run: id, ...(work.read && { read: work.read }) };
  const journal = await openRunBusJournal(place, { diagnostics, io });
  const { store, past } = opened.adopt(journal, (each) => each.close());
  const contain = containment.workspaces?.({
    rules: work.rules,
    onConnection: (event, label) => bus.emit(event, label),
  });
  const slots = opened.adopt(
    await Slots.open({
      home: config.home,
      repository,
      run: id,
      env,
      setup: { commands: settings.setup ?? [], outputFolder: join(runFolder(config.home, id), 'outputs', 'setup') },
      ...(contain && { contain }),
      ...(settings.dependencies && { dependencies: dependenciesBrought(containment, settings.dependencies) }),
    }),
    (each) => each.close(),
  );
  const fleet = opened.adopt(await openFleetOfRun(work, diagnostics.diagnose), async (each) =>
    each?.fleet.close(each.isOver),
  );
  const redactor = openSecretRedactor(config);
  const bus = openRunBus(id, redactor, { store, past });
  work.onBus?.(bus);
  const wanted = await openMcpServers(runServersWish(work, surroundings, env['TRACEPARENT']), { io, ...diagnostics });
  const servers = opened.adopt(wanted, (each) => each.close());
  opened.defer(() => workers.close());
  const kept = { past, slots, redactor, bus };
  return { settings, repository, env, stop, workers, person, opened: models, ...kept, servers, fleet };
}

async function openFleetOfRun({ hosts, id }: RunWork, onDiagnostic: Diagnose): Promise<OpenFleet | undefined> {
  return hosts && { fleet: await openFleet(hosts, id, onDiagnostic), isOver: false };
}

function runServersWish(work: RunWork, { settings }: Surroundings, traceparent: string | undefined): ServersWish {
  const { models, repository, rules, containment, servers, id, hub } = work;
  const windows = [...models.chosen.values()].map(({ model }) => modelFactsOf(model.name).contextTokens);
  return {
    settings,
    rules,
    containment,
    sources: servers ?? { project: { trusted: () => [] }, files: [] },
    top: repository.top,
    contextTokens: settings.contextTokens ?? Math.min(...windows),
    frozenAt: join(runFolder(settings.home, id), 'mcp.json'),
    hub,
    traceparent,
  };
}

function runOptions(
  work: RunWork,
  surroundings: Surroundings,
  parts: RunParts,
): Omit<Parameters<typeof run>[0], 'known'> {
  const { settings: config, io } = surroundings;
  const { id, view, yes } = work;
  const { settings, repository, env, workers, person, bus, past, slots, redactor, stop, servers, control } = parts;
  const shownAsked = work.asked === undefined ? view.asked : undefined;
  const asked = work.asked ?? terminalQuestions(person);
  const { models } = parts.opened;
  const modelOf = (name: string) => openModelByLabel(name, models, config);
  const agents = work.extensions.agents.map(({ name }) => name);
  const approve =
    work.approve ?? openPlanApproval({ yes, settings, home: config.home, modelOf, agents }, { person, io });
  const team = work.shared?.team;
  return {
    id,
    settings,
    repository,
    slots,
    models,
    bus,
    past,
    records: () => readRunRecords(config.home, id),
    env,
    ignore: config.ignore,
    runTask: workers.run,
    ...(team !== undefined && { limit: team.limit }),
    admission: (emit) => new RunAdmission({ ...openRunAllowance(work, parts), emit, settled: () => bus.settled() }),
    servers,
    policy: { rules: work.rules, yes, contained: work.containment.workspaces !== undefined },
    question: (question, signal) =>
      shownAsked?.ask(question, signal) ?? view.whileAsking(() => asked.ask(question, signal)),
    control,
    retry: defaultRetry,
    folder: runFolder(config.home, id),
    redact: (text) => redactor.text(text),
    plan: work.plan,
    ...(work.opening !== undefined && { opening: work.opening }),
    extensions: work.extensions,
    approve: approve && ((proposal, signal) => view.whileAsking(() => approve(proposal, signal))),
    warm: (threads) => workers.warm(threads),
    exitCodeOf: (ending) => exitCodeOfRun({ ...ending, stop: stop.cause(), mayBePartial: work.mayBePartial }),
  };
}

/** Where attempts work in a run with hosts. */
async function hostedRunOptions(
  { id, hosts, rules }: RunWork,
  { fleet, slots, env, repository, settings, past, bus }: RunParts,
  startedAt: string,
): Promise<Pick<Parameters<typeof run>[0], 'workspaces'>> {
  if (fleet === undefined || hosts === undefined) return {};
  const { setup = [], sandbox } = settings;
  const remote = await findRemote(repository, env);
  const required = { setup, sandbox: sandbox?.mode ?? 'required', net: sandbox?.net ?? [], rules } as const;
  const asked = { ...required, ...(remote !== undefined && { remote }) };
  const common = { id, slots, local: hosts.local, startedAt, env, repository, asked };
  const open = await loadHostedWorkspaces();
  const rest = { settled: () => bus.settled(), records: past?.records ?? [] };
  // The same for all plans of the run: they count their placements together.
  let workspaces: Workspaces | undefined;
  return { workspaces: (tell) => (workspaces ??= open(fleet.fleet, { ...common, ...rest, tell })) };
}

/** The lanes and the budget that admit the requests of a run. */
function openRunAllowance({ shared }: RunWork, { settings, past, opened }: RunParts) {
  const { cap, taskCap } = settings;
  const pot = shared?.pot;
  return {
    models: opened.terms,
    before: past?.spent ?? NOTHING_SPENT,
    ...(pot !== undefined && { pot }),
    ...(cap !== undefined && { cap }),
    ...(taskCap !== undefined && { taskCap }),
  };
}

/** Only bubblewrap can show a folder at another path. */
function dependenciesBrought({ use }: Containment, folders: readonly string[]): Dependencies {
  return { folders, how: use.used === 'bubblewrap' ? 'mount' : 'link' };
}

export type Workers = {
  readonly run: RunTask;
  readonly warm: (threads: number) => void;
  readonly close: () => Promise<void>;
};

/** Threads that so many workers share. */
export type Threads = {
  readonly workers: number;
  readonly threads: number | undefined; // default: one per core
};

export async function openRunWorkers(
  { workers, threads = availableParallelism() }: Threads,
  { diagnostics, launcher }: Pick<Surroundings, 'diagnostics'> & { readonly launcher: RunLauncher | undefined },
): Promise<Workers> {
  const threadsMax = Math.min(workers, threads);
  if (threadsMax === 0) {
    const { runWorkerTask: runTask } = await import('@drover/worker/task');
    return { run: runTask, warm: () => undefined, close: async () => undefined };
  }
  const pool = openPool({
    entry: workerEntry,
    threadsMax,
    workersMax: workers,
    ...(launcher !== undefined && { launcher: launcher.address }),
    onDiagnostic: diagnostics.diagnose,
  });
  // Warm at most as many threads as can start at once, until the number of tasks is known.
  pool.warm(Math.min(threadsMax, availableParallelism()));
  return pool;
}

async function writeRunResult(path: string, run: string, told: RunEnd): Promise<void> {
  const { type: _, ...end } = told;
  await writeFile(path, `${jsonViewText({ run, ...end }, 2)}\n`);
}
