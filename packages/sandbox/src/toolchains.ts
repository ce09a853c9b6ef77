// Toolchains outside the system folders, such as ~/.cargo/bin or ~/.nvm. A sandbox shows them read-only.
//
// A folder is shown if it is on the PATH, or if it belongs to a version manager on the PATH. Nothing else in HOME is
// shown: HOME itself, folders above it, and folders that hold credentials beside programs are left out. The same holds
// for /tmp: a toolchain below /tmp is shown, and nothing beside it.

import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { isInSandboxPath, statOrUndefined } from './paths.ts';

/** Version managers: the variable that names their folder, and its default below HOME. */
const MANAGERS: readonly (readonly [variable: string, below: string])[] = [
  ['RUSTUP_HOME', '.rustup'],
  ['PYENV_ROOT', '.pyenv'],
  ['RBENV_ROOT', '.rbenv'],
  ['NVM_DIR', '.nvm'],
  ['VOLTA_HOME', '.volta'],
  ['FNM_DIR', '.local/share/fnm'],
  ['ASDF_DATA_DIR', '.asdf'],
  ['MISE_DATA_DIR', '.local/share/mise'],
  ['SDKMAN_DIR', '.sdkman'],
  ['BUN_INSTALL', '.bun'],
  ['UV_PYTHON_INSTALL_DIR', '.local/share/uv/python'],
];

/** Single installations that a variable names. */
const INSTALLATIONS = ['JAVA_HOME', 'GOROOT', 'DOTNET_ROOT', 'CONDA_PREFIX', 'VIRTUAL_ENV', 'MAVEN_HOME', 'M2_HOME'];

// Beside their programs these keep credentials, caches or data of the user: only what programs need is shown.
const PERSONAL = ['.cargo', '.local', '.npm-global', 'go'];
const NEEDED_BESIDE = ['lib', 'share/pipx', 'share/uv'];

// Folders that many programs share: single folders below them may be shown, never the whole.
const SHARED = ['/tmp', '/var/tmp', '/dev/shm', '/run'];

export type Toolchains = {
  readonly folders: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

type Surroundings = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Folders that other mounts show, or that no toolchain may bring in. */
  readonly covered: readonly string[];
};

export function findToolchains({ env, home, covered }: Surroundings): Toolchains {
  const path = (env['PATH'] ?? '').split(':').filter((folder) => isAbsolute(folder) && isToolchainFolder(folder));
  const managers = MANAGERS.flatMap(([variable, below]) => {
    const folder = env[variable] ?? join(home, below);
    const isUsed =
      env[variable] !== undefined || path.some((each) => isInSandboxPath(each, folder)) || variable === 'RUSTUP_HOME';
    return isUsed && isToolchainFolder(folder) ? [[variable, folder] as const] : [];
  });
  const installations = INSTALLATIONS.flatMap((variable) => {
    const folder = env[variable];
    return folder !== undefined && isAbsolute(folder) && isToolchainFolder(folder) ? [folder] : [];
  });
  const wanted = [
    ...managers.map(([, folder]) => folder),
    ...installations,
    ...path.flatMap((each) => toolchainProgramFolders(each, home)),
  ];
  const folders = [...new Set(wanted.map((folder) => realpathSync(folder)))].filter(
    (folder) =>
      !doesToolchainShowTooMuch(folder, home) &&
      !covered.some((other) => isInSandboxPath(folder, other) || isInSandboxPath(other, folder)),
  );
  return { folders, env: Object.fromEntries(managers) };
}

/** The paths that show Node, read-only: its installation, or the program alone if its folder holds other files. */
export function nodeToolchainPaths(node: string, { home, covered }: Omit<Surroundings, 'env'>): readonly string[] {
  const folders = toolchainProgramFolders(dirname(node), home);
  const isOpen = (folder: string) =>
    !doesToolchainShowTooMuch(folder, home) &&
    !covered.some((other) => isInSandboxPath(other, folder) || isInSandboxPath(folder, other));
  return folders.every(isOpen) ? folders : [node];
}

/** Whether the folder is, or holds, HOME or a folder for temporary files. */
function doesToolchainShowTooMuch(folder: string, home: string): boolean {
  return [home, ...SHARED].some((other) => isInSandboxPath(other, folder));
}

/** The installation that a folder of programs belongs to; the folder and its libraries where that shows too much. */
function toolchainProgramFolders(programs: string, home: string): readonly string[] {
  const above = dirname(programs);
  if (basename(programs) !== 'bin' || doesToolchainShowTooMuch(above, home)) return [programs];
  if (PERSONAL.some((name) => above === join(home, name)))
    return [programs, ...NEEDED_BESIDE.map((name) => join(above, name)).filter(isToolchainFolder)];
  return [existsSync(join(above, 'lib')) ? above : programs];
}

function isToolchainFolder(path: string): boolean {
  return statOrUndefined(path)?.isDirectory() === true;
}
