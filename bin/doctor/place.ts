// Checks drover's state folder, the disk, the config files, the environment and the terminal.

import { access, constants, mkdtemp, rmdir, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { checkDiagnosticsLevel } from '../diagnostics.ts';
import type { Io } from '../io.ts';
import {
  checkEnvironmentAddresses,
  errorCodeOf,
  type ConfigFile,
  type ConfigFiles,
  findConfigPaths,
  readConfigFile,
  readProjectConfig,
  type Settings,
  readSettings,
  stateFolder,
} from '../start/settings.ts';
import { isAsciiTerminal } from '../views/text/style.ts';
import type { Finding } from './finding.ts';
import { statIfThere } from '@drover/core/files/lookup';

const GIB = 1024 ** 3;
const FREE_GIB_GOOD = 1;
const FREE_GIB_MIN = 0.1;
const COLUMNS_GOOD = 60;

/** `settings`: read as far as possible; a file with mistakes counts as missing. */
export type CheckedPlace = { readonly findings: readonly Finding[]; readonly settings: Settings | undefined };

export async function checkPlaceForDoctor(io: Io, cwd: string): Promise<CheckedPlace> {
  let paths: Awaited<ReturnType<typeof findConfigPaths>>;
  try {
    paths = await findConfigPaths(io, cwd);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const homeless: Finding = { check: 'state', state: 'bad', says: error.message };
    return { findings: [homeless, checkTerminalFinding(io)], settings: undefined };
  }
  const [user, project] = await Promise.all([
    checkConfigFile('your config', paths.user, readConfigFile),
    paths.project === undefined ? NO_PROJECT : checkConfigFile('project config', paths.project, readProjectConfig),
  ]);
  const files = { userPath: paths.user, user: user.file, project: project.file };
  const { finding: environment, settings } = await checkEnvironment(files, io, cwd);
  const warnings = (settings?.warnings ?? []).map((says): Finding => ({
    check: 'project config',
    state: 'note',
    says,
  }));
  const home = stateFolder(io);
  const findings = [
    await checkStateFolder(home),
    await checkDiskSpace(home),
    user.finding,
    ...(warnings.length === 0 ? [project.finding] : warnings),
    environment,
    checkTerminalFinding(io),
  ];
  return { findings, settings };
}

type Read = { readonly finding: Finding; readonly file: ConfigFile | undefined };

const NO_PROJECT: Read = {
  finding: { check: 'project config', state: 'good', says: 'none; drover init writes one' },
  file: undefined,
};

type ReadConfig = (path: string) => Promise<ConfigFile | undefined>;

async function checkConfigFile(check: string, path: string, read: ReadConfig): Promise<Read> {
  try {
    const file = await read(path);
    if (file === undefined) {
      return { finding: { check, state: 'good', says: `none at ${path}; drover init --user writes one` }, file };
    }
    const keys = Object.keys(file.config);
    const says = `${path}${keys.length === 0 ? ', in which nothing is set' : ` sets ${keys.join(', ')}`}`;
    return { finding: { check, state: 'good', says }, file };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return {
      finding: { check, state: 'bad', says: error.message, fix: `fix it, or move ${path} away` },
      file: undefined,
    };
  }
}

async function checkStateFolder(home: string): Promise<Finding> {
  const check = 'state';
  const fix = 'make it writable, or set DROVER_HOME to a folder that is';
  try {
    const place = await nearestExistingFolder(home);
    if (place !== home) {
      await access(`${place}/.`, constants.W_OK); // with the dot, a file in its place is refused
      return { check, state: 'good', says: `${home}, which will be made` };
    }
    await rmdir(await mkdtemp(join(home, '.doctor-')));
    return { check, state: 'good', says: home };
  } catch (error) {
    return { check, state: 'bad', says: `cannot write to ${home} (${errorCodeOf(error)})`, fix };
  }
}

async function checkDiskSpace(home: string): Promise<Finding> {
  const check = 'disk';
  try {
    const { bavail, bsize } = await statfs(await nearestExistingFolder(home));
    const free = (bavail * bsize) / GIB;
    const says = `${free.toFixed(1)} GiB free for journals and workspaces`;
    if (free >= FREE_GIB_GOOD) return { check, state: 'good', says };
    const fix = 'drover gc removes what no run needs; DROVER_HOME moves everything to another disk';
    return { check, state: free >= FREE_GIB_MIN ? 'note' : 'bad', says, fix };
  } catch (error) {
    return { check, state: 'note', says: `free space is unknown (${errorCodeOf(error)})` };
  }
}

/** The folder itself, or its nearest ancestor that exists. */
async function nearestExistingFolder(path: string): Promise<string> {
  for (let folder = path; ; folder = dirname(folder)) {
    const found = await statIfThere(folder);
    if (found !== undefined || dirname(folder) === folder) return folder;
  }
}

async function checkEnvironment(
  files: ConfigFiles,
  io: Io,
  cwd: string,
): Promise<{ readonly finding: Finding; readonly settings: Settings | undefined }> {
  const check = 'environment';
  try {
    checkEnvironmentAddresses(io.env);
    checkDiagnosticsLevel(io.env);
    const settings = await readSettings(files, io, cwd);
    return { finding: { check, state: 'good', says: 'drover can read all its variables' }, settings };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { finding: { check, state: 'bad', says: error.message }, settings: undefined };
  }
}

function checkTerminalFinding({ stdin, stdout, env }: Io): Finding {
  const check = 'terminal';
  if (stdout.isTTY !== true || stdin.isTTY !== true)
    return { check, state: 'note', says: 'not a terminal, so drover cannot ask: calls that need approval are denied' };
  const columns = stdout.columns ?? 0;
  const says = `${columns} columns, ${env['TERM'] ?? 'of no known kind'}${isAsciiTerminal(env) ? ', plain ASCII' : ''}`;
  if (env['TERM'] === 'dumb')
    return { check, state: 'note', says: `${says}: no dashboard and no chat`, fix: 'set TERM to what it really is' };
  if (columns < COLUMNS_GOOD) return { check, state: 'note', says: `${says}: lines will be cut`, fix: 'widen it' };
  return { check, state: 'good', says };
}
