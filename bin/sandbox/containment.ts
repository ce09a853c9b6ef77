// The sandbox of this command: chosen and probed once, then applied to each workspace or folder.
//
// Guarantees
//   1. `required` without a working sandbox is a UsageError, before any request is sent.
//   2. Only the user can turn it off: by a flag, or in the user's own config.
//   3. Without a sandbox, a notice says so once, and the user is asked about every command.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Contain, Contained } from '@drover/coordinator/slots/containment';
import type { NetworkEvent } from '@drover/protocol/events';
import { UsageError } from '@drover/core/errors';
import { deniedPaths } from '@drover/core/permission/denied-paths';
import type { Rule } from '@drover/core/permission/rules';
import type { SandboxUse } from '@drover/protocol/run';
import { openControlGroup } from '@drover/sandbox/linux/limits';
import { type FoundSandbox, openSandbox } from '@drover/sandbox/open';
import type { BroughtFolder, SandboxPolicy, SandboxSystem } from '@drover/sandbox/policy';
import { unsealSandboxPaths } from '@drover/sandbox/seal';
import type { Diagnose } from '@drover/core/diagnosis';
import type { Io } from '../io.ts';
import { ripgrepFile } from '@drover/core/tools/files/ripgrep';
import { gitProcessEnvironment } from '@drover/core/tools/process/environment';
import { distrustProgramFolders } from '@drover/core/tools/process/program';
import { errorCodeOf } from '../start/settings.ts';
import { stateFolderProblem } from '../start/state-problem.ts';
import { listGitRunLater } from './git-run-later.ts';
import { recordPlaceholders, removeLeftPlaceholders } from './placeholders.ts';
import { sandboxProjectView, findGitTop } from './project-view.ts';
import { coalesceSandboxRefusals } from './refusals.ts';
import { parseSandboxHost } from './hosts-and-modes.ts';
import type { SandboxWish } from './sandbox-options.ts';
import { isInSandboxPath, realPathForSandbox } from '@drover/sandbox/paths';

export type Containment = {
  /** For the journal and the report. */
  readonly use: SandboxUse;
  /** A sentence for the user, where commands are not contained. */
  readonly notice: string | undefined;
  /** Why there is none, if none is available. */
  readonly missing?: string;
  /** Absent where commands run in the open. */
  readonly workspaces: ((place: Outside) => Contain) | undefined;
  readonly folder: ((place: Outside & OwnFolder) => Promise<Contained>) | undefined;
  /** Paths in the user's own folder that git runs something from; they may be missing. */
  readonly runLater: (root: string) => Promise<readonly string[]>;
  /** For a server that all agents share: it reads the project, and writes to a private folder. */
  readonly server?: (place: ServerPlace) => Promise<Contained>;
  /** For a server of one task: it may do in the workspace what commands may. */
  readonly taskServer?: (policy: SandboxPolicy, rights: ServerRights) => Promise<Contained>;
};

type ServerRights = {
  readonly net: readonly string[];
  readonly readable: readonly string[];
  readonly writable: readonly string[];
};

type ServerPlace = ServerRights & {
  readonly rules: readonly Rule[];
  /** Holds its private files, which it finds again at its next start. */
  readonly folder: string;
  readonly project: string;
};

/** A sandbox needs this of the agent that it is for. */
type Outside = {
  readonly rules: readonly Rule[];
  readonly onConnection: (event: NetworkEvent, label: Label) => void;
};

type Label = { readonly worker?: number; readonly task?: string; readonly attempt?: number };

type Folder = { readonly root: string; readonly folder: string };
type OwnFolder = Folder & { readonly runLater: readonly string[] };

type Place = {
  readonly io: Io;
  readonly state: string;
  /** The folder to contain commands in, where that is the user's own and no workspace. */
  readonly root?: string;
  /** The folder or repository that is worked on. */
  readonly project: string;
  readonly yes?: boolean; // every question is approved
};

/** Throws UsageError where the wish cannot be met. */
export async function openContainment(wish: SandboxWish, place: Place): Promise<Containment> {
  const { io, state, project, yes } = place;
  const { mode } = wish;
  const use = { mode, net: wish.net.map(({ text }) => text), writable: wish.writable };
  // The user has said so; there is no need to say it back.
  const runLater: Containment['runLater'] = (root) =>
    listGitRunLater({ root: realPathForSandbox(root), env: gitProcessEnvironment(io.env) });
  if (mode === 'off') return { ...containmentInSandbox({ ...use, used: 'off' }, undefined), runLater };
  const distrusted = listDistrustedFolders(io, [project, ...wish.writable]);
  distrustProgramFolders(distrusted);
  const found = checkSandboxSuits(await findSandbox(io, state, { avoid: distrusted }), place);
  if (found.works) {
    const { system } = found;
    const outside = { state, distrusted, upstream: upstreamProxyIn(io.env), own: listOwnSandboxFolders(io, state) };
    return {
      use: { ...use, used: system.backend, version: system.version },
      notice: undefined,
      workspaces: (given) => (view) =>
        containInSandbox(system, wish, { ...given, ...view, ...outside, sealed: [], label: view }),
      folder: (given) => containFolder(system, wish, { ...given, ...outside }),
      runLater,
      server: (given) => containServer(system, given, outside),
      taskServer: (policy, rights) => sandboxWithRights(policy, rights, outside.upstream),
    };
  }
  const { missing, fix } = found;
  if (mode === 'required')
    throw new UsageError(
      `commands must be contained (--sandbox required, the default in CI), and there is no sandbox: ${missing}; ${fix}; --sandbox off runs commands in the open instead, once you or a rule allow them`,
    );
  return {
    ...containmentInSandbox(
      { ...use, used: 'none' },
      `no sandbox: ${missing}, so ${yes === true ? 'commands run in the open' : 'every command is asked about'}; ${fix}`,
    ),
    runLater,
    missing,
  };
}

/** Warns in the diagnostics if there is no sandbox to be had. */
export function diagnoseSandbox({ missing }: Containment, { diagnose }: { readonly diagnose: Diagnose }): void {
  if (missing !== undefined) diagnose('there is no sandbox', { missing }, 'warn');
}

/** Commands may write there, in this session or in an earlier one: no program in them may run outside. */
function listDistrustedFolders({ cwd }: Io, folders: readonly string[]): readonly string[] {
  const all = [cwd, ...folders]
    .flatMap((folder) => [folder, findGitTop(realPathForSandbox(folder)) ?? folder])
    .map(realPathForSandbox);
  return [...new Set(all)].filter((folder) => !isInSandboxPath('/usr', folder));
}

/** A folder that holds the user's home cannot be shown without showing everything. */
function checkSandboxSuits(found: FoundSandbox, { root, state }: Pick<Place, 'root' | 'state'>): FoundSandbox {
  if (root !== undefined && isInSandboxPath(realPathForSandbox(root), realPathForSandbox(state)))
    throw new UsageError(
      `drover's state in ${state} is, or holds, the folder that is worked on; set DROVER_HOME to another one`,
    );
  if (!found.works || root === undefined) return found;
  if (realPathForSandbox(root) === realPathForSandbox(tmpdir())) {
    const why = `${root} is the folder for temporary files, where drover's own lie`;
    return { works: false, missing: why, fix: 'work in a folder below it, or set TMPDIR to another', checks: [] };
  }
  if (!isInSandboxPath(found.system.home, realPathForSandbox(root))) return found;
  const missing = `${root} is, or holds, your home folder, and a sandbox would show all of it`;
  return { works: false, missing, fix: 'work in a folder below it', checks: [] };
}

function containmentInSandbox(use: SandboxUse, notice: string | undefined): Omit<Containment, 'runLater'> {
  return { use, notice, workspaces: undefined, folder: undefined };
}

/** The sandbox of this machine. */
type Search = { readonly avoid?: readonly string[]; readonly again?: boolean };

export async function findSandbox(
  io: Io,
  state: string,
  { avoid = listDistrustedFolders(io, []), again = false }: Search = {},
): Promise<FoundSandbox> {
  const { platform, arch: architecture } = process;
  // Node never ends to make a folder there.
  if (/^\/(?:proc|sys)(?:\/|$)/.test(state)) throw stateFolderProblem(state, 'ENOENT');
  try {
    return await openSandbox({ state, env: io.env, node: io.node, avoid, platform, architecture }, { again });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    throw stateFolderProblem(state, errorCodeOf(error), error);
  }
}

type Enclosed = Outside &
  Folder & {
    readonly readable: readonly string[];
    readonly brought?: readonly BroughtFolder[];
    readonly sealed: readonly string[];
    readonly state: string;
    /** Folders of drover itself. No sandbox shows them. */
    readonly own: readonly string[];
    readonly upstream: string | undefined;
    readonly distrusted: readonly string[];
    readonly label: Label;
  };

async function containFolder(
  system: SandboxSystem,
  wish: SandboxWish,
  place: Outside & OwnFolder & Pick<Enclosed, 'state' | 'own' | 'upstream' | 'distrusted'>,
): Promise<Contained> {
  const root = realPathForSandbox(place.root);
  removeLeftPlaceholders(place.state);
  const contained = await containInSandbox(system, wish, {
    ...place,
    root,
    ...sandboxProjectView(root, place.runLater),
    label: {},
  });
  const endRecord = recordPlaceholders(place.state, contained.policy.sealed);
  return {
    ...contained,
    async close() {
      await contained.close();
      endRecord();
    },
  };
}

/**
 * Folders of drover itself. Sockets of its proxies are among the temporary files, and so is code that Node compiled.
 */
function listOwnSandboxFolders({ env }: Io, state: string): readonly string[] {
  const { NODE_COMPILE_CACHE: compiled } = env;
  return [state, tmpdir(), ...(compiled === undefined ? [] : [compiled])];
}

type FarSide = Pick<Enclosed, 'state' | 'upstream' | 'distrusted' | 'own'>;

async function containServer(system: SandboxSystem, given: ServerPlace, outside: FarSide): Promise<Contained> {
  const { folder, project, rules } = given;
  if (isInSandboxPath(realPathForSandbox(outside.state), realPathForSandbox(project)))
    throw new Error(`drover's state in ${outside.state} is inside ${project}; set DROVER_HOME to another folder`);
  const root = join(folder, 'work');
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const net = given.net.map(parseSandboxHost);
  const writable = given.writable.map(realPathForSandbox);
  const place = {
    ...outside,
    root: realPathForSandbox(root),
    folder: realPathForSandbox(folder),
    rules: [],
    label: {},
    sealed: [],
  };
  const readable = [project, ...given.readable];
  const wish: SandboxWish = { mode: 'auto', net, writable };
  const contained = await containInSandbox(system, wish, { ...place, readable, onConnection: () => undefined });
  const { policy } = contained;
  const hidden = [...policy.hidden, ...deniedPaths(rules, realPathForSandbox(project)).hidden];
  return { ...contained, policy: { ...policy, hidden } };
}

/** The same sandbox with the rights of a server added. */
async function sandboxWithRights(
  policy: SandboxPolicy,
  rights: ServerRights,
  upstream: string | undefined,
): Promise<Contained> {
  const net = rights.net.map(parseSandboxHost);
  const onConnection = () => undefined;
  const proxy = net.length === 0 ? undefined : await openProxySocket({ net }, { onConnection, label: {}, upstream });
  return {
    policy: {
      ...policy,
      readable: [...policy.readable, ...rights.readable.map(realPathForSandbox)],
      writable: [...policy.writable, ...rights.writable.map(realPathForSandbox)],
      ...(proxy !== undefined && { proxy: { socket: proxy.socket, rules: net.map(({ rule }) => rule) } }),
    },
    close: async () => proxy?.close(),
  };
}

/** The user's own proxy, through which allowed hosts are reached then. */
function upstreamProxyIn(env: Io['env']): string | undefined {
  const names = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];
  return names.map((name) => env[name]).find((address) => address?.startsWith('http://') === true);
}

let groups = 0;

async function containInSandbox(system: SandboxSystem, wish: SandboxWish, place: Enclosed): Promise<Contained> {
  const { root, folder, rules } = place;
  for (const name of ['home', 'tmp']) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
  const denied = deniedPaths(rules, root);
  const group = openControlGroup(String(groups++), system.limits);
  const proxy = wish.net.length === 0 ? undefined : await openProxySocket(wish, place);
  const shown = [root, ...place.readable, ...wish.writable];
  const own = place.own.map(realPathForSandbox).filter((each) => shown.some((other) => isInSandboxPath(each, other)));
  const policy: SandboxPolicy = {
    system,
    root,
    folder,
    // Searches run inside, too.
    readable: [...place.readable.map(realPathForSandbox), await ripgrepFile()],
    writable: wish.writable,
    ...(place.brought !== undefined && { brought: place.brought }),
    sealed: [...place.sealed, ...denied.sealed],
    hidden: [...denied.hidden, ...own],
    distrusted: place.distrusted,
    groups: group.folders,
    ...(proxy !== undefined && { proxy: { socket: proxy.socket, rules: wish.net.map(({ rule }) => rule) } }),
  };
  return {
    policy,
    async close() {
      await proxy?.close();
      group.close();
      unsealSandboxPaths(folder);
    },
  };
}

/** Where a path of a socket may be, it is at most a hundred characters long: not in the state folder. */
async function openProxySocket(
  { net }: Pick<SandboxWish, 'net'>,
  { onConnection, label, upstream }: Pick<Enclosed, 'onConnection' | 'label' | 'upstream'>,
): Promise<{ readonly socket: string; readonly close: () => Promise<void> }> {
  const socket = join(mkdtempSync(join(tmpdir(), 'drover-net-')), 'proxy');
  const { worker, task, attempt } = label;
  const place = {
    ...(worker !== undefined && { worker }),
    ...(task !== undefined && { task }),
    ...(attempt !== undefined && { attempt }),
  };
  const refusals = coalesceSandboxRefusals((event) => onConnection(event, place));
  try {
    const { openSandboxProxy: openProxy } = await import('@drover/sandbox/net/proxy');
    const proxy = await openProxy({
      rules: net.map(({ rule }) => rule),
      socket,
      ...(upstream !== undefined && { upstream }),
      onConnection: (connection) => refusals.take({ type: 'network', ...connection }),
    });
    return {
      socket,
      async close() {
        await proxy.close();
        refusals.flush();
        await rm(dirname(socket), { recursive: true, force: true });
      },
    };
  } catch (error) {
    rmSync(dirname(socket), { recursive: true, force: true });
    throw error;
  }
}
