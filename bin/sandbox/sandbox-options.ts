// Combines the sandbox options and config keys into one wish.

import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import type { SandboxMode } from '@drover/protocol/run';
import { choiceOption, listOption, parseNonEmpty, type Values } from '../start/command.ts';
import type { Settings } from '../start/settings.ts';
import { isContinuousIntegration } from '../views/view-choice.ts';
import { type HostName, parseSandboxHost, SANDBOX_MODES } from './hosts-and-modes.ts';
import { isInSandboxPath, realPathForSandbox } from '@drover/sandbox/paths';

export const sandboxOptions = {
  sandbox: choiceOption(
    'Sandbox:',
    'Run commands in a sandbox if possible, always, or never (default: auto; in CI: required)',
    SANDBOX_MODES,
  ),
  net: listOption('Sandbox:', 'HOST', 'Host that commands in the sandbox may reach', parseSandboxHost),
  writable: listOption(
    'Sandbox:',
    'PATH',
    'Path outside the workspace that commands in the sandbox may write to',
    parseNonEmpty,
  ),
};

export type SandboxArgs = Values<typeof sandboxOptions>;

export type SandboxWish = {
  readonly mode: SandboxMode;
  readonly net: readonly HostName[];
  readonly writable: readonly string[]; // real
};

type Place = {
  readonly settings: Settings;
  readonly cwd: string; // where relative paths begin
  readonly root: string; // the folder, or the repository, that is worked on
  /** The sandbox that the resumed run recorded. */
  readonly before?: {
    readonly mode: SandboxMode;
    readonly net: readonly string[];
    readonly writable: readonly string[];
  };
};

/** A flag wins over the resumed run's sandbox, and that over the config. Throws UsageError. */
export function readSandboxWish(args: SandboxArgs, { settings, cwd, root, before }: Place): SandboxWish {
  const configured = settings.sandbox ?? (isContinuousIntegration(settings.env) ? 'required' : 'auto');
  const net = [...settings.net, ...(before?.net ?? []).map(parseSandboxHost), ...args.net];
  const paths = [...settings.writable, ...(before?.writable ?? []), ...args.writable.map((path) => resolve(cwd, path))];
  return {
    mode: args.sandbox ?? before?.mode ?? configured,
    net: [...new Map(net.map((host) => [host.text, host])).values()],
    writable: [...new Set(paths.map((path) => checkWritablePath(path, root, settings)))],
  };
}

// The sandbox has its own /proc, /sys, /dev and /run; writes to the others would change the machine.
const SYSTEM = ['/proc', '/sys', '/dev', '/run', '/etc', '/usr', '/bin', '/sbin', '/lib', '/lib64', '/boot'];
const CREDENTIALS = ['.ssh', '.gnupg', '.aws', '.kube', '.docker', '.config', '.netrc', '.npmrc', '.git-credentials'];

function checkWritablePath(path: string, root: string, { home: state, env }: Settings): string {
  const real = realPathForSandbox(path);
  const refuse = (why: string) => new UsageError(`--writable ${path}: ${why}`);
  if (statSync(real, { throwIfNoEntry: false }) === undefined) throw refuse('there is no such path; make it first');
  const isMemory = isInSandboxPath(real, '/dev/shm') && real !== '/dev/shm';
  if ((SYSTEM.some((folder) => isInSandboxPath(real, folder)) && !isMemory) || real === '/opt')
    throw refuse('it is a folder of the system; name a folder of your own, such as a cache');
  if (CREDENTIALS.some((name) => isInSandboxPath(real, realPathForSandbox(join(env['HOME'] ?? '/', name)))))
    throw refuse('it holds your credentials or settings; name a folder without any, such as a cache');
  if (isInSandboxPath(real, realPathForSandbox(root)) && real !== realPathForSandbox(root))
    throw refuse('it is inside the folder that is worked on; commands write to their workspace anyway');
  if (isInSandboxPath(realPathForSandbox(root), real))
    throw refuse('it is, or holds, the folder that is worked on; name a folder beside it, such as a cache');
  if (isInSandboxPath(realPathForSandbox(state), real) || isInSandboxPath(real, realPathForSandbox(state)))
    throw refuse(`it would open drover's own state in ${state}; name another folder`);
  if (isInSandboxPath(realPathForSandbox(env['HOME'] ?? '/'), real))
    throw refuse('it is, or holds, your home folder; name a folder in it, such as a cache');
  return real;
}
