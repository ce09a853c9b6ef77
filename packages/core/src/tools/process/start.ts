// Starts a process: from here, or, where this thread has been given one, through the launcher.

import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import {
  endWith,
  Launcher,
  type LauncherAddress,
  openFiles,
  processEnd,
  type ProcessInput,
  type ProcessSpec,
  type StartedProcess,
} from './launcher.ts';
import { programOn, trustedPath } from './program.ts';

let launcher: Launcher | undefined;
let launcherAddress: LauncherAddress | undefined;

/**
 * From now on this thread has its processes started by the launcher that listens there; undefined: by itself.
 * Returns what it was before.
 */
export function launchWith(address: LauncherAddress | undefined): LauncherAddress | undefined {
  const before = launcherAddress;
  if (address?.path === before?.path) return before;
  launcher?.close();
  launcherAddress = address;
  launcher = address === undefined ? undefined : new Launcher(address);
  return before;
}

type Apart = StartedProcess & { readonly stderr: Readable };

/** Throws what Node's spawn would. Without an input, its stdin is empty. */
export async function startProcess(
  spec: ProcessSpec & { readonly together?: never },
  input?: ProcessInput,
): Promise<Apart>;
export async function startProcess(spec: ProcessSpec, input?: ProcessInput): Promise<StartedProcess>;
export async function startProcess(spec: ProcessSpec, input?: ProcessInput): Promise<StartedProcess> {
  const found = located(spec);
  return (await launcher?.start(found, input)) ?? startHere(found, input);
}

// What it is called stays as it was: programs use it when they talk of themselves.
function located(given: ProcessSpec): ProcessSpec {
  // A sandbox reports; what runs in it may use every program it sees.
  const PATH = given.env['PATH'];
  const isOutside = given.report !== true && PATH !== undefined;
  const spec = isOutside ? { ...given, env: { ...given.env, PATH: trustedPath(PATH) } } : given;
  const file = spec.file.includes('/') ? undefined : programOn(spec.env['PATH'] ?? '', spec.file);
  return file === undefined ? spec : { ...spec, file, argv0: spec.file };
}

async function startHere(spec: ProcessSpec, input: ProcessInput | undefined): Promise<StartedProcess> {
  const { argv0, cwd, env, detached } = spec;
  using files = openFiles(spec.files ?? []);
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
  const ended = processEnd(child, spec);
  // A signal that can't be delivered is reported here too; the end of the process is not.
  child.on('error', () => undefined);
  // One that ends before it has read its input is heard of by its exit.
  stdin?.on('error', () => undefined);
  if (stdin !== null) endWith(stdin, input ?? '');
  return { pid, stdout, stderr, ended };
}
