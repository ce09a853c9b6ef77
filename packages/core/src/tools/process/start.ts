// Starts a process: through the launcher if this thread has one, else directly.

import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import {
  endWithLauncher,
  Launcher,
  type LauncherAddress,
  openLauncherFiles,
  launchedProcessEnd,
  type ProcessInput,
  type ProcessSpec,
  type StartedProcess,
} from './launcher.ts';
import { findProgramOn, environmentOfTrustedPrograms, findDistrustedReason } from './program.ts';

let launcher: Launcher | undefined;
let launcherAddress: LauncherAddress | undefined;

/**
 * Makes this thread start its processes through the launcher at an address; undefined: directly. Returns the
 * previous address.
 */
export function launchProcessesWith(address: LauncherAddress | undefined): LauncherAddress | undefined {
  const before = launcherAddress;
  if (address?.path === before?.path) return before;
  launcher?.close();
  launcherAddress = address;
  launcher = address === undefined ? undefined : new Launcher(address);
  return before;
}

type Apart = StartedProcess & { readonly stderr: Readable };

/** Starts a process. Throws the errors of Node's spawn, or why the program may not run. No `input`: empty stdin. */
export async function startProcess(
  spec: ProcessSpec & { readonly together?: never },
  input?: ProcessInput,
): Promise<Apart>;
export async function startProcess(spec: ProcessSpec, input?: ProcessInput): Promise<StartedProcess>;
export async function startProcess(spec: ProcessSpec, input?: ProcessInput): Promise<StartedProcess> {
  const found = locateProgram(spec);
  return (await launcher?.start(found, input)) ?? startProcessHere(found, input);
}

// Finds the program on the PATH. Keeps argv0, because programs print it in messages.
function locateProgram(given: ProcessSpec): ProcessSpec {
  // `report` marks a sandbox. Commands inside it may use every program they see.
  const spec = given.report === true ? given : { ...given, env: environmentOfTrustedPrograms(given.env) };
  if (spec.file.includes('/')) return spec;
  const file = findProgramOn(spec.env['PATH'] ?? '', spec.file);
  if (file !== undefined) return { ...spec, file, argv0: spec.file };
  const why = given.report === true ? undefined : findDistrustedReason(given.env['PATH'] ?? '', spec.file);
  if (why !== undefined) throw new Error(why);
  return spec;
}

async function startProcessHere(spec: ProcessSpec, input: ProcessInput | undefined): Promise<StartedProcess> {
  const { argv0, cwd, env, detached } = spec;
  using files = openLauncherFiles(spec.files ?? []);
  const child = spawn(spec.file, spec.args, {
    argv0,
    cwd,
    env,
    detached,
    stdio: [
      input === undefined ? 'ignore' : 'pipe',
      'pipe',
      'pipe',
      ...files.descriptors,
      ...(spec.report === true ? ['pipe' as const] : []),
    ],
  });
  const { pid, stdin, stdout, stderr } = child;
  if (pid === undefined || stdout === null || stderr === null) {
    return new Promise((_, reject) => {
      child.once('error', reject);
    });
  }
  const ended = launchedProcessEnd(child, spec);
  // Ignore errors of undeliverable signals; the exit is reported separately.
  child.on('error', () => undefined);
  // The process may exit before it reads its input; the exit is reported separately.
  stdin?.on('error', () => undefined);
  if (stdin !== null) endWithLauncher(stdin, input ?? '');
  return { pid, stdout, stderr, ended };
}
