// Settings: the environment and two config files, read once into one value.
//
// WHOSE WORD COUNTS
//   A flag wins over the environment, that over the user's config, and that over the project's.
//
// THE PROJECT'S CONFIG IS A STRANGER'S
//   A user who clones a repository has not agreed to its config. The config may make drover do less (fewer
//   steps, more denials) or propose things (workers, gates, files to ignore). Where requests go, which keys
//   are used, what is allowed and which commands run by themselves is for the user to say: drover names such
//   keys to the user and ignores them, until the user approves exactly this file in exactly this repository
//   (packages/trust).

import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { readOwnFile } from '@drover/core/files/own-file';
import { knownProviders, type Price } from '@drover/core/model/catalog';
import { HOOK_MS_DEFAULT, HOOK_MS_MAX, type Hook } from '@drover/core/hooks/hook';
import type { Rule } from '@drover/core/permission/rules';
import type { ModelRoles, SandboxMode } from '@drover/protocol/run';
import type { Config, ProviderConfig, ReadConfig, Timeouts } from '../files/config-file.ts';
import type { McpEntry } from '../files/mcp-file.ts';
import type { Io } from '../io.ts';
import type { ConfiguredModel } from '../model/model-roles.ts';
import { listForeignRules } from '../permission/rule-names.ts';
import { isAddress } from './quantities.ts';
import type { HostName } from '../sandbox/hosts-and-modes.ts';
import { lstatIfThere, statIfThere } from '@drover/core/files/lookup';
import { type Approval, trustApprovalOf, type ProjectEntry, whyNotTrusted } from '@drover/trust/approvals';
import { projectFoldersForTrust } from '@drover/trust/place';

export type Settings = {
  /** The folder of drover's state. */
  readonly home: string;
  readonly env: Io['env'];
  readonly model: string | undefined;
  /** Models by role from the config; undefined if it names none. */
  readonly models: { readonly [Role in keyof Required<ModelRoles>]: readonly ConfiguredModel[] | undefined };
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  readonly prices: ReadonlyMap<string, Price>;
  readonly charsPerToken: number | undefined;
  readonly textCallRetries: number | undefined;
  readonly contextTokens: number | undefined;
  readonly steps: number | undefined;
  readonly workers: number | undefined;
  readonly threads: number | undefined;
  readonly author: Config['author'];
  readonly bell: boolean;
  readonly gates: readonly string[];
  readonly setup: readonly string[];
  readonly ignore: readonly string[];
  readonly rules: readonly Rule[];
  readonly hooks: readonly Hook[];
  readonly timeouts: Timeouts;
  /** Undefined if no config sets it. */
  readonly sandbox: SandboxMode | undefined;
  readonly net: readonly HostName[];
  readonly writable: readonly string[]; // absolute paths
  /** MCP servers of the configs, with their places. */
  readonly mcp: ReadonlyMap<string, { readonly entry: McpEntry; readonly place: string }>;
  /** The ignored parts of the project's config, for the user. */
  readonly warnings: readonly string[];
};

export type ConfigFile = {
  readonly path: string;
  readonly text: string;
  readonly sha256: string;
} & ReadConfig;

export type TrustOptions = {
  /** Count every file of the project as approved. */
  readonly trustsAll: boolean;
};

export async function loadSettings(io: Io, cwd: string, trust: TrustOptions = ONLY_APPROVED): Promise<Settings> {
  const { env } = io;
  checkEnvironmentAddresses(env);
  const { user: userPath, project: projectPath } = await findConfigPaths(io, cwd);
  const user = await readConfigFile(userPath);
  const project = projectPath === undefined ? undefined : await readProjectConfig(projectPath);
  return readSettings({ userPath, user, project, ...trust }, io, cwd);
}

export const ONLY_APPROVED: TrustOptions = { trustsAll: false };

/** The config files that exist. */
export type ConfigFiles = Partial<TrustOptions> & {
  readonly userPath: string;
  readonly user: ConfigFile | undefined;
  readonly project: ConfigFile | undefined;
};

export async function readSettings(files: ConfigFiles, io: Io, cwd: string): Promise<Settings> {
  const { userPath, user, project, trustsAll = false } = files;
  const { env } = io;
  const home = stateFolder(io);
  const approval = project === undefined ? 'none' : await trustApprovalOf(home, await configFileEntry(project));
  const approved = approval === 'approved' || trustsAll;
  const own = user?.config ?? {};
  const theirs = project?.config ?? {};
  const trusted = approved ? theirs : {};
  return {
    home,
    env,
    model: own.model ?? trusted.model,
    models: settingsModels(user, approved ? project : undefined),
    providers: new Map([...(trusted.providers ?? []), ...(own.providers ?? [])]),
    prices: new Map([...(trusted.prices ?? []), ...(own.prices ?? [])]),
    charsPerToken: environmentCharsPerToken(env) ?? own.charsPerToken ?? trusted.charsPerToken,
    textCallRetries:
      environmentCount(env, 'DROVER_TEXT_TOOL_CALL_RETRY_LIMIT', { min: 0, max: 10 }) ??
      own.textCallRetries ??
      trusted.textCallRetries,
    contextTokens: own.contextTokens ?? trusted.contextTokens,
    steps: lowerSetting(settingsSteps(own), settingsSteps(theirs)),
    workers: own.workers ?? theirs.workers,
    threads: own.threads ?? trusted.threads,
    author: own.author ?? trusted.author,
    bell: own.bell ?? trusted.bell ?? true,
    gates: [...(own.gates ?? []), ...(trusted.gates ?? [])],
    setup: [...(own.setup ?? []), ...(trusted.setup ?? [])],
    ignore: [...(own.ignore ?? []), ...(theirs.ignore ?? [])],
    rules: [
      ...(own.allow ?? []),
      ...(trusted.allow ?? []),
      ...(own.ask ?? []),
      ...(theirs.ask ?? []),
      ...(own.deny ?? []),
      ...(theirs.deny ?? []),
    ],
    hooks: [...settingsHooks(user, true), ...(approved ? settingsHooks(project, false) : [])],
    timeouts: { ...trusted.timeouts, ...own.timeouts },
    // A project may require a sandbox, and never turn it off, approved or not.
    sandbox: own.sandbox === 'off' || theirs.sandbox !== 'required' ? own.sandbox : 'required',
    net: [...(own.net ?? []), ...(trusted.net ?? [])],
    writable: [
      ...absoluteSettingsPaths(homeFolder(env), own.writable),
      ...(project === undefined ? [] : absoluteSettingsPaths(dirname(dirname(project.path)), trusted.writable)),
    ],
    mcp: new Map([...(approved ? settingsServers(project) : []), ...settingsServers(user)]),
    warnings: [
      ...(project === undefined || approved ? [] : ignoredSettings(project, approval, { cwd, userPath })),
      ...(project === undefined ? [] : looseningSettings(project, cwd)),
      ...[user, project].flatMap((file) => (file === undefined ? [] : listForeignRules(file))),
    ],
  };
}

function settingsModels(user: ConfigFile | undefined, project: ConfigFile | undefined): Settings['models'] {
  return {
    plan: settingsModelRoles(user, 'plan') ?? settingsModelRoles(project, 'plan'),
    work: settingsModelRoles(user, 'work') ?? settingsModelRoles(project, 'work'),
    review: settingsModelRoles(user, 'review') ?? settingsModelRoles(project, 'review'),
  };
}

function settingsModelRoles(
  file: ConfigFile | undefined,
  role: keyof ModelRoles,
): readonly ConfiguredModel[] | undefined {
  const names = file?.config.models?.[role];
  return names?.map((name, at) => ({ name, place: file?.place(['models', role, at]) ?? '' }));
}

function settingsServers(file: ConfigFile | undefined) {
  return Object.entries(file?.config.mcp ?? {}).map(
    ([name, entry]) => [name, { entry, place: file?.place(['mcp', name]) ?? '' }] as const,
  );
}

function settingsHooks(file: ConfigFile | undefined, isOwn: boolean): readonly Hook[] {
  return (file?.config.hooks ?? []).map(({ at, run, tools, timeout = HOOK_MS_DEFAULT }, index) => ({
    at,
    command: run,
    timeoutMs: Math.min(timeout, HOOK_MS_MAX),
    isOwn,
    form: 'drover',
    place: file?.place(['hooks', index]) ?? '',
    ...(tools !== undefined && { tools }),
  }));
}

/** A relative path starts at HOME in the user's config, and at the project's folder in the project's. */
function absoluteSettingsPaths(folder: string, paths: readonly string[] = []): readonly string[] {
  return paths.map((path) => resolve(folder, path));
}

const MAY_BE_SET_BY_A_PROJECT: readonly (keyof Config)[] = ['workers', 'ignore', 'steps', 'turns', 'ask', 'deny'];

/** Keys that make sense in a project's config: those it may set, and the gates it proposes. */
export const projectKeys: readonly (keyof Config)[] = [...MAY_BE_SET_BY_A_PROJECT, 'gates', 'sandbox'];

type Whereabouts = { readonly cwd: string; readonly userPath: string };

function ignoredSettings(
  { path, config }: ConfigFile,
  approval: Approval,
  { cwd, userPath }: Whereabouts,
): readonly string[] {
  const file = relative(cwd, path) || path;
  const gates = config.gates ?? [];
  const keys = Object.keys(config) as (keyof Config)[];
  const ignored = keys.filter((key) => key !== 'gates' && key !== 'sandbox' && !MAY_BE_SET_BY_A_PROJECT.includes(key));
  const why = whyNotTrusted(approval);
  return [
    ...(why === undefined || (ignored.length === 0 && gates.length === 0)
      ? []
      : [`${file} is not approved: ${why}; look at it again with: drover trust`]),
    ...(ignored.length === 0
      ? []
      : [
          `${file} may not set ${ignored.join(', ')}, so it is ignored; if you want it, move it to ${userPath}, or approve the file as it is: drover trust`,
        ]),
    ...gates.map(
      (gate) => `${file} names a gate, which is not run unless you ask for it: --gate ${quoteSetting(gate)}`,
    ),
  ];
}

function looseningSettings({ path, config }: ConfigFile, cwd: string): readonly string[] {
  if (config.sandbox === undefined || config.sandbox === 'required') return [];
  const file = relative(cwd, path) || path;
  return [`${file} sets sandbox: ${config.sandbox}, which is ignored: a project may only require a sandbox`];
}

function quoteSetting(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function settingsSteps({ steps, turns }: Config): number | undefined {
  return lowerSetting(steps, turns);
}

function lowerSetting(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

/** The project's config to approve, in the repository that really contains it. */
async function configFileEntry({ path, sha256 }: ConfigFile): Promise<ProjectEntry> {
  const folder = await realpath(dirname(dirname(path)));
  const repository = (await projectFoldersForTrust(folder)).at(-1) ?? folder;
  return { repository, file: relative(repository, join(folder, '.drover', 'config.yaml')), sha256 };
}

// ── folders ───────────────────────────────────────────────────────────────────────────────────

/** The folder of drover's state, which does not depend on the working folder. */
export function stateFolder({ env, cwd }: Pick<Io, 'env' | 'cwd'>): string {
  return resolve(cwd, environmentText(env, 'DROVER_HOME') ?? join(homeFolder(env), '.drover'));
}

/** The path of the user's config, and the project's if it exists. */
export async function findConfigPaths(
  io: Pick<Io, 'env' | 'cwd'>,
  cwd: string,
): Promise<{ readonly user: string; readonly project: string | undefined }> {
  return { user: userConfigPath(io.env), project: await projectConfigPath(cwd, stateFolder(io)) };
}

/** The folder that --cwd names, or the one drover was started in. */
export async function findWorkFolder(wanted: string | undefined, io: Pick<Io, 'cwd'>): Promise<string> {
  const folder = resolve(io.cwd, wanted ?? '.');
  const found = await statIfThere(folder);
  if (found?.isDirectory() === true) return folder;
  throw new UsageError(`--cwd: there is no folder ${folder}`);
}

export function homeFolder(env: Io['env']): string {
  const home = environmentText(env, 'HOME');
  if (home === undefined) throw new UsageError('HOME is not set; set it, or set DROVER_HOME and XDG_CONFIG_HOME');
  return home;
}

function userConfigPath(env: Io['env']): string {
  const base = environmentText(env, 'XDG_CONFIG_HOME');
  // The base directory specification says to ignore relative paths.
  const folder = base !== undefined && isAbsolute(base) ? base : join(homeFolder(env), '.config');
  return join(folder, 'drover', 'config.yaml');
}

/** The path of the nearest project config. */
async function projectConfigPath(cwd: string, home: string): Promise<string | undefined> {
  for (const folder of await projectFoldersForTrust(cwd)) {
    const path = join(folder, '.drover', 'config.yaml');
    // In the user's home, .drover is drover's own folder and not a project's. A dangling link is found too: reading it
    // reports the problem.
    if (dirname(path) !== home && (await lstatIfThere(path)) !== undefined) return path;
  }
  return undefined;
}

/** A config in a repository, whose links must stay inside. */
export async function readProjectConfig(path: string): Promise<ConfigFile | undefined> {
  const folder = dirname(dirname(path));
  return readConfigFile(path, (await projectFoldersForTrust(folder)).at(-1));
}

/** Undefined for a missing file; throws UsageError for a file that cannot be read or holds mistakes. */
export async function readConfigFile(path: string, within?: string): Promise<ConfigFile | undefined> {
  const found = await readOwnFile({ path, within });
  if (found.kind === 'missing') return undefined;
  if (found.kind === 'refused') throw new UsageError(`${path} ${found.problem}; ${found.fix}`);
  const { bytes } = found;
  const text = decodeUtf8(bytes);
  if (text === undefined) throw new UsageError(`${path} is not UTF-8 text; save it as UTF-8`);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  // Most starts find no config, and zod takes time to load.
  const { parseConfigFile } = await import('../files/config-file.ts');
  return { path, text, ...parseConfigFile(text, path), sha256 };
}

// ── the environment ───────────────────────────────────────────────────────────────────────────

/** The value of a variable; an empty one counts as unset. */
export function environmentText(env: Io['env'], name: string): string | undefined {
  const text = env[name];
  return text === undefined || text === '' ? undefined : text;
}

export function checkEnvironmentAddresses(env: Io['env']): void {
  for (const name of new Set(knownProviders.map(({ baseUrlEnv }) => baseUrlEnv))) {
    const address = environmentText(env, name);
    if (address !== undefined && !isAddress(address)) {
      throw new UsageError(`${name} is '${address}', which is not an http or https address; mend or unset it`);
    }
  }
}

function environmentCharsPerToken(env: Io['env']): number | undefined {
  const text = environmentText(env, 'DROVER_CHARS_PER_TOKEN');
  if (text === undefined) return undefined;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= 32) return value;
  throw new UsageError(`DROVER_CHARS_PER_TOKEN is '${text}'; it must be a number from 1 to 32`);
}

type Bounds = { readonly min: number; readonly max: number };

function environmentCount(env: Io['env'], name: string, { min, max }: Bounds): number | undefined {
  const text = environmentText(env, name);
  if (text === undefined) return undefined;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${name} is '${text}'; it must be a whole number from ${min} to ${max}`);
}

/** Bytes as text, or undefined if they are not valid UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
