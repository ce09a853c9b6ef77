// Starts a run from the arguments of a command: a new run, or a resumed one.

import { access, constants } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { mergeObstacle } from '@drover/coordinator/merge/own-checkout';
import { openRepository, type Repository } from '@drover/coordinator/git/repository';
import type { RunEnd } from '@drover/coordinator/run/end';
import type { ReadRun } from '@drover/coordinator/run/journal';
import { UsageError } from '@drover/core/errors';
import type { Message } from '@drover/protocol/messages';
import type { RunSettings } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import { childProcessEnvironment, gitProcessEnvironment } from '@drover/core/tools/process/environment';
import type { Of as CompanionOf } from '../batch/companion.ts';
import { openDiagnostics } from '../diagnostics.ts';
import { chooseRunModels, chooseModelRoles } from '../model/model-roles.ts';
import { printError, type Io } from '../io.ts';
import { openContainment } from '../sandbox/containment.ts';
import { readSandboxWish } from '../sandbox/sandbox-options.ts';
import {
  errorCodeOf,
  loadSettings,
  ONLY_APPROVED,
  type Settings,
  type TrustOptions,
  findWorkFolder,
} from '../start/settings.ts';
import type { Extensions } from '@drover/core/hooks/extensions';
import { checkPlannedAgents, loadExtensions } from '../extensions/load.ts';
import type { Project } from '@drover/trust/project';
import { openTrustedProject } from '../trust/open-project.ts';
import { openRunView } from '../views/view-choice.ts';
import { chooseDependencySetup } from '../preflight/dependencies.ts';
import { tellUncommittedChanges } from '../preflight/uncommitted.ts';
import { checkHosts, readHostsWish, type HostsWish } from '../hosts/open-fleet.ts';
import { type RunArgs, runSettingsFromArgs, WORKERS_MAX } from './run-options.ts';
import { readResultSettings } from '../start/result-options.ts';
import type { Companion, Shared } from './running.ts';

export type Surrounded = {
  readonly settings: Settings;
  readonly repository: Repository;
  readonly extensions: Extensions;
  readonly project: Project;
};

/** The config, the repository and the extensions of the folder to work in. */
export async function openRunSurroundings(
  folder: string | undefined,
  io: Io,
  trust: TrustOptions = ONLY_APPROVED,
): Promise<Surrounded> {
  const cwd = await findWorkFolder(folder, io);
  const settings = await loadSettings(io, cwd, trust);
  for (const warning of settings.warnings) await printError(io, warning);
  const repository = await openRepository(cwd, gitProcessEnvironment(io.env));
  const project = await openTrustedProject(io, cwd, trust);
  return { settings, repository, project, extensions: await loadExtensions(project, settings, io) };
}

export type Wish = { readonly goal: string; readonly tasks: readonly PlannedTask[] | undefined };

/** Settings of a new run. Throws UsageError if the run can't start. */
export async function newRunSettings(
  args: RunArgs,
  { goal, tasks }: Wish,
  { settings, repository }: Surrounded,
  io: Io,
): Promise<RunSettings> {
  const roles = await chooseModelRoles(args, tasks !== undefined, { settings, top: repository.top, io });
  const made = runSettingsFromArgs(args, { goal, roles, repository, settings, cores: availableParallelism() });
  const { checkGates } = await import('../preflight/gate-check.ts');
  await checkGates(made.gates, { cwd: repository.top, env: childProcessEnvironment(io.env) });
  if (made.deliver === 'merge') {
    const place = { repository, base: repository.head, env: childProcessEnvironment(io.env) };
    const obstacle = await mergeObstacle(place, AbortSignal.timeout(MERGE_CHECK_MS_MAX));
    if (obstacle !== undefined)
      throw new UsageError(
        `--deliver merge: ${obstacle}. Without --deliver merge you get a branch to merge when you like`,
      );
  }
  const chosen = { goal, branch: args.branch, author: args.author ?? settings.author, deliver: made.deliver };
  const result = await readResultSettings(chosen, repository, childProcessEnvironment(io.env));
  const { home } = settings;
  const wish = { setup: [...settings.setup, ...args.setup], yes: args.yes, mayRefuse: !args['dry-run'], home };
  const preparation = await chooseDependencySetup(wish, repository, io);
  if (!args['dry-run']) await tellUncommittedChanges(repository, io);
  return { ...made, ...result, ...preparation };
}

const MERGE_CHECK_MS_MAX = 60_000;

export type Start = Surrounded & {
  readonly id: string;
  readonly run: RunSettings;
  readonly tasks: readonly PlannedTask[] | undefined;
  /** The conversation that its coordinator begins with. */
  readonly opening?: readonly Message[];
  /** Tasks of plans that the run had before it was resumed. */
  readonly planned?: readonly PlannedTask[];
  /** Its journal as it was read, if the run is resumed. */
  readonly read?: ReadRun;
  readonly shared?: Shared;
};

export async function startRun(
  args: RunArgs,
  { id, run, tasks, opening, planned, read, settings, repository, project, extensions, shared }: Start,
  io: Io,
): Promise<RunEnd> {
  const named = tasks ?? planned ?? [];
  checkPlannedAgents(named, extensions);
  const models = chooseRunModels(run, [...named, ...extensions.agents], { settings, top: repository.top });
  await checkRunOutputFiles(args, io);
  const before = run.sandbox;
  const place = { settings, cwd: io.cwd, root: repository.top, ...(before !== undefined && { before }) };
  const containment = await openContainment(readSandboxWish(args, place), {
    io,
    state: settings.home,
    project: repository.top,
    yes: args.yes,
  });
  if (containment.notice !== undefined) await printError(io, containment.notice);
  const hosts = readHostsWish(args, settings);
  const { workers } = args;
  const work = await settingsWithHosts({ hosts, workers, run, tasks: tasks ?? [], repository, settings });
  const view = await openRunView(args, io);
  const diagnostics = await openDiagnostics(io, args.log);
  const [{ carryRun }, companion] = await Promise.all([
    import('./running.ts'),
    companionForRun({ run: id, home: settings.home, settings: run, shows: runShownAs(args) }, args, io),
  ]);
  try {
    return await carryRun(
      {
        id,
        settings: work,
        ...(hosts !== undefined && { hosts }),
        repository,
        models,
        plan: tasks,
        ...(opening !== undefined && { opening }),
        ...(read !== undefined && { read }),
        view,
        rules: [...settings.rules, ...args.allow, ...args.ask, ...args.deny],
        yes: args.yes,
        containment,
        servers: { project, files: args.mcp },
        mayBePartial: args['allow-partial'],
        result: args.result,
        extensions,
        ...(companion !== undefined && { companion }),
        ...(shared !== undefined && { shared }),
      },
      { settings: { ...settings, threads: args.threads ?? settings.threads }, diagnostics, io },
    );
  } finally {
    await diagnostics.close();
  }
}

type HostedStart = Pick<Start, 'run' | 'repository' | 'settings'> & {
  readonly hosts: HostsWish | undefined;
  readonly workers: number | undefined; // as the user said it
  readonly tasks: readonly PlannedTask[];
};

/** Throws UsageError if the run could not work with its hosts. By default it does as many tasks at once as they can. */
export async function settingsWithHosts({ hosts, workers, run, tasks, ...at }: HostedStart): Promise<RunSettings> {
  if (hosts === undefined) return run;
  const { repository, settings } = at;
  const slots = await checkHosts(hosts, { repository, base: run.base, tasks, env: settings.env });
  return { ...run, workers: workers ?? Math.min(WORKERS_MAX, Math.max(1, slots + hosts.local)) };
}

/** Throws UsageError for an output file that can't be written, before anything is spent. */
async function checkRunOutputFiles({ result, junit, summary }: RunArgs, io: Io): Promise<void> {
  for (const [flag, file] of Object.entries({ result, junit, summary })) {
    if (file === undefined) continue;
    const folder = dirname(resolve(io.cwd, file));
    await access(folder, constants.W_OK).catch((error: unknown) => {
      throw new UsageError(`--${flag}: cannot write to ${folder} (${errorCodeOf(error)})`, { cause: error });
    });
  }
}

/** Hooks of a batch, new or resumed, or of a run that writes reports; undefined for any other run. */
async function companionForRun(
  of: Omit<CompanionOf, 'batch'>,
  { junit, summary }: RunArgs,
  io: Io,
): Promise<Companion | undefined> {
  const reports = {
    ...(junit !== undefined && { junit: resolve(io.cwd, junit) }),
    ...(summary !== undefined && { summary: resolve(io.cwd, summary) }),
  };
  const { readStoredBatch } = await import('../batch/history.ts');
  const batch = await readStoredBatch(of.home, of.run);
  if (batch !== undefined) {
    const { batchCompanion } = await import('../batch/companion.ts');
    return batchCompanion({ ...of, batch: { ...batch, ...reports } }, io);
  }
  if (Object.keys(reports).length === 0) return undefined;
  const { runReports } = await import('./reports.ts');
  return runReports(reports, of);
}

function runShownAs({ json, view }: RunArgs): CompanionOf['shows'] {
  if (json || view === 'json') return 'json';
  return view === 'silent' ? 'nothing' : 'text';
}
