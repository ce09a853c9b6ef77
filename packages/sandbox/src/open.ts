// Finds the sandbox of this machine and proves it with a probe (probe.ts), or reports what is missing.
//
// Guarantees
//   1. A sandbox is reported as working only if a probe passed with this program, kernel, user and filter.
//   2. A passed probe is cached. A failed one is not, so a repaired machine works at once.
//   3. Node is visible in the sandbox, read-only, wherever it is installed.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readlinkSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { release, userInfo } from 'node:os';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import { sandboxEtcFolder } from './linux/etc.ts';
import { sandboxLimitsOfMachine } from './linux/limits.ts';
import type { SandboxSystem, SystemFolder } from './policy.ts';
import { type Check, probeSandbox, readProbeVerdict } from './probe.ts';
import { seccompFilterProgram } from './linux/seccomp.ts';
import { isInSandboxPath, statOrUndefined, realPathForSandbox } from './paths.ts';
import { findToolchains, nodeToolchainPaths } from './toolchains.ts';

const PROBE_VERSION = 2;
const VERSION_MIN = [0, 8] as const;

export type SandboxPlace = {
  /** Folder of drover's own state. No sandbox shows it. */
  readonly state: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly node: string;
  /** Folders that commands may write. Bubblewrap is never taken from them. */
  readonly avoid?: readonly string[];
  readonly platform: NodeJS.Platform;
  readonly architecture: string;
};

export type FoundSandbox =
  | { readonly works: true; readonly system: SandboxSystem; readonly checks: readonly Check[] }
  | {
      readonly works: false;
      readonly missing: string; // one sentence
      readonly fix: string;
      readonly checks: readonly Check[];
    };

/** Returns the sandbox of this machine. `again` ignores the cached probe. */
export async function openSandbox(place: SandboxPlace, { again = false } = {}): Promise<FoundSandbox> {
  switch (place.platform) {
    case 'linux':
      return openBubblewrapSandbox(place, again);
    case 'darwin':
      return openSeatbeltSandbox(place);
    default:
      return noSandbox(`drover has no sandbox for ${place.platform}`, 'use Linux, or WSL 2 on Windows');
  }
}

async function openBubblewrapSandbox(place: SandboxPlace, again: boolean): Promise<FoundSandbox> {
  const { state, architecture } = place;
  if (architecture !== 'x64' && architecture !== 'arm64')
    return noSandbox(`drover has no system call filter for ${architecture}`, 'use a machine of x64 or arm64');
  const program = findSandboxProgram(trustedSandboxFolders(place), 'bwrap');
  if (program === undefined) return noSandbox('bubblewrap (bwrap) is not installed', INSTALL);
  const filter = seccompFilterProgram(architecture);
  const folder = join(state, 'sandbox');
  const trouble = makeSandboxFolder(folder);
  if (trouble !== undefined)
    return noSandbox(`nothing can be kept in ${state} (${trouble})`, 'set DROVER_HOME to a folder that can be written');
  const key = sandboxVerdictKey(program, filter);
  const verdictFile = join(folder, `probe-${key}.json`);
  const known = again ? undefined : (proven.get(key) ?? asSandboxVerdict(readProbeVerdict(verdictFile)));
  const about = known ?? (await aboutSandboxProgram(program));
  if ('missing' in about) return noSandbox(about.missing, INSTALL);
  const system = sandboxSystemOf(place, {
    ...about,
    program,
    filter: keepSandboxFile(join(folder, sandboxFilterName(filter)), filter),
    folder,
  });
  if (system === undefined)
    return noSandbox(`drover's state is inside a system folder: ${state}`, 'set DROVER_HOME to a folder of yours');
  if (known !== undefined) return { works: true, system, checks: known.checks };
  const result = await probeSandbox(system, { architecture, state: folder });
  if (!result.started)
    return noSandbox(`bubblewrap can't start a sandbox here: ${result.message}`, fixForSandbox(result.message));
  if (!result.finished)
    return noSandbox(
      `the attempts to leave the sandbox broke off: ${result.message}`,
      `check that ${system.node} can run, or report this with the output of drover doctor`,
    );
  const { checks } = result;
  const through = checks.filter(({ contained }) => !contained).map(({ name }) => name);
  if (through.length > 0)
    return {
      works: false,
      missing: `the sandbox does not hold here: a program inside could ${through.join(', ')}`,
      fix: REPORT,
      checks,
    };
  proven.set(key, { ...about, checks });
  keepSandboxFile(verdictFile, JSON.stringify({ ...about, checks } satisfies Verdict));
  return { works: true, system, checks };
}

const proven = new Map<string, Verdict>(); // in this process, by verdictKey

type About = { readonly version: string; readonly options: readonly string[] };
type Verdict = About & { readonly checks: readonly Check[] };

function asSandboxVerdict(value: unknown): Verdict | undefined {
  const isOne = typeof value === 'object' && value !== null && 'checks' in value && 'options' in value;
  // Drover wrote it, in a folder that only the user can write.
  return isOne ? (value as Verdict) : undefined;
}

function sandboxVerdictKey(program: string, filter: Buffer): string {
  const { mtimeMs, size, ino } = statSync(program);
  const { uid } = userInfo();
  const facts = [PROBE_VERSION, program, mtimeMs, size, ino, release(), uid, sandboxFilterName(filter)];
  return createHash('sha256').update(facts.join('\n')).digest('hex').slice(0, 16);
}

function sandboxFilterName(filter: Buffer): string {
  return `filter-${createHash('sha256').update(filter).digest('hex').slice(0, 16)}`;
}

async function aboutSandboxProgram(program: string): Promise<About | { readonly missing: string }> {
  const ask = async (option: string) => (await promisify(execFile)(program, [option], { timeout: 10_000 })).stdout;
  try {
    const version = /(\d+)\.(\d+)(?:\.\d+)?/.exec(await ask('--version'));
    const [major, minor] = [Number(version?.[1]), Number(version?.[2])];
    if (version === null || major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1]))
      return {
        missing: `${program} is version ${version?.[0] ?? 'unknown'}, and drover needs ${VERSION_MIN.join('.')} or newer`,
      };
    const help = await ask('--help');
    const options = ['--disable-userns'].filter((option) => help.includes(option));
    return { version: `bubblewrap ${version[0]}`, options };
  } catch (error) {
    return { missing: `${program} can't be run (${error instanceof Error ? error.message : String(error)})` };
  }
}

type Found = About & { readonly program: string; readonly filter: string; readonly folder: string };

function sandboxSystemOf(place: SandboxPlace, found: Found): SandboxSystem | undefined {
  const { state, env, node } = place;
  const home = realPathForSandbox(env['HOME'] ?? '/');
  const own = [realPathForSandbox(state), ...(home === '/' ? [] : [home])];
  const folders = sandboxSystemFolders().filter(
    ({ path, link }) => link !== undefined || !own.some((each) => isInSandboxPath(each, path)),
  );
  if (!folders.some(({ path }) => path === '/usr')) return undefined;
  const real = realPathForSandbox(node);
  const system = folders.filter(({ link }) => link === undefined).map(({ path }) => path);
  const covered = [...system, '/proc', '/dev', '/etc', realPathForSandbox(state)];
  const toolchains = findToolchains({ env, home, covered });
  const { program, filter, folder, version, options } = found;
  return {
    backend: 'bubblewrap',
    program,
    version,
    folders,
    toolchains: system.some((each) => isInSandboxPath(real, each))
      ? toolchains.folders
      : [...toolchains.folders, ...nodeToolchainPaths(real, { home, covered })],
    toolchainEnv: toolchains.env,
    etc: sandboxEtcFolder(folder),
    filter,
    options,
    shell: findSandboxProgram(trustedSandboxFolders(place), 'bash') ?? '/bin/bash',
    node: real,
    home,
    limits: sandboxLimitsOfMachine(),
  };
}

const TOP_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix', '/snap'];

function sandboxSystemFolders(): readonly SystemFolder[] {
  return TOP_FOLDERS.flatMap((path): SystemFolder[] => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isSymbolicLink() === true) return [{ path, link: readlinkSync(path) }];
    return found?.isDirectory() === true ? [{ path }] : [];
  });
}

function openSeatbeltSandbox({ env, node, state }: SandboxPlace): FoundSandbox {
  const program = findSandboxProgram(['/usr/bin'], 'sandbox-exec');
  if (program === undefined)
    return noSandbox('sandbox-exec is missing', 'it comes with macOS; look for it in /usr/bin');
  const home = realPathForSandbox(env['HOME'] ?? '/');
  const toolchains = findToolchains({ env, home, covered: ['/usr', '/opt', realPathForSandbox(state)] });
  const system: SandboxSystem = {
    backend: 'seatbelt',
    program,
    version: 'seatbelt (experimental)',
    folders: [],
    toolchains: [...toolchains.folders, dirname(realPathForSandbox(node))],
    toolchainEnv: toolchains.env,
    etc: '',
    filter: '',
    options: [],
    shell: '/bin/bash',
    node: realPathForSandbox(node),
    home,
    limits: sandboxLimitsOfMachine(),
  };
  return { works: true, system, checks: [] };
}

function noSandbox(missing: string, fix: string): FoundSandbox {
  return { works: false, missing, fix, checks: [] };
}

const INSTALL = 'install it (apt install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap)';

const REPORT = 'report this with the output of drover doctor';

const INSIDE_A_CONTAINER =
  'in a container, allow namespaces: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined';

function fixForSandbox(message: string): string {
  if (/uid map|loopback|RTM_NEWADDR/i.test(message))
    return `allow bwrap to make user namespaces: on Ubuntu, sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or give bwrap an AppArmor profile with "userns,"; ${INSIDE_A_CONTAINER}`;
  if (/namespace|Operation not permitted|Permission denied|clone/i.test(message))
    return `allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1 where that exists; on Ubuntu, kernel.apparmor_restrict_unprivileged_userns=0; ${INSIDE_A_CONTAINER}`;
  return REPORT;
}

function trustedSandboxFolders({ env, avoid = [] }: SandboxPlace): readonly string[] {
  const folders = (env['PATH'] ?? '/usr/bin:/bin').split(delimiter).filter(isAbsolute);
  return folders.filter(
    (folder) =>
      !avoid.some((each) => isInSandboxPath(folder, each) || isInSandboxPath(realPathForSandbox(folder), each)),
  );
}

function findSandboxProgram(folders: readonly string[], name: string): string | undefined {
  return folders
    .map((folder) => join(folder, name))
    .find((file) => {
      const found = statOrUndefined(file);
      return found?.isFile() === true && (found.mode & 0o111) !== 0;
    });
}

/** Returns the error code if the folder can't be created. */
function makeSandboxFolder(path: string): string | undefined {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return String(error.code);
    throw error;
  }
}

/** Writes a file atomically and returns its path. */
function keepSandboxFile(path: string, content: string | Buffer): string {
  if (typeof content !== 'string' && statSync(path, { throwIfNoEntry: false })?.size === content.length) return path;
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, content, { mode: 0o600 });
  renameSync(draft, path);
  return path;
}
