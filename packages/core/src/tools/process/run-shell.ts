// Runs a shell command to its end: inside the sandbox if the caller passes one, else without.
//
// Guarantees
//   1. With a sandbox, the command never runs outside it. A sandbox that does not start is a DroverError, never a
//      result of the command.
//   2. stdout and stderr arrive as one stream, in the order they were written.
//   3. A command that fills a disk, with bytes or with files, is ended while there is still space for drover's own
//      files.

import { statfsSync } from 'node:fs';
import { bubblewrapMounts } from '@drover/sandbox/linux/bubblewrap';
import { realPathForSandbox } from '@drover/sandbox/paths';
import { hasSandboxStarted } from '@drover/sandbox/sandbox';
import type { Limits, SandboxPolicy } from '@drover/sandbox/policy';
import { sealSandboxPaths, hasUnsealedSandboxPaths } from '@drover/sandbox/seal';
import { DroverError, ToolError } from '../../errors.ts';
import { openProcessBox, startProcessBoxAhead } from './boxes.ts';
import { attendChildProcess, type ChildEnd, type OutputReader, runChildProcess } from './child.ts';
import type { Likelihood, TurnContext } from '../tool.ts';
import { findProgramOn } from './program.ts';

const COMPLAINT_CHARS_MAX = 1_000;
const DISK_LOOK_MS = 500;
const INTERRUPTED = 'interrupted before it was started';

export type ShellSpec = {
  readonly script: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly sandbox: SandboxPolicy | undefined;
  readonly callId: string;
  readonly timeoutMs: number;
  readonly onOutput: OutputReader;
};

export type ShellEnd = ChildEnd & { readonly isDiskFull: boolean };

/** Throws ToolError if the process can't be started, and DroverError if the sandbox did not start. */
export async function runShell(spec: ShellSpec, signal: AbortSignal): Promise<ShellEnd> {
  const { sandbox } = spec;
  if (sandbox === undefined) return { ...(await runShellOutsideSandbox(spec, signal)), isDiskFull: false };
  checkShellFolders(sandbox);
  using _links = sealSandboxPaths(sandbox.folder, sandbox.sealed);
  using disk = watchDiskForShell(sandbox);
  if (signal.aborted) throw new ToolError(INTERRUPTED);
  const startedAt = performance.now();
  const { cwd, env, callId, timeoutMs } = spec;
  const place = { sandbox, cwd, env, callId };
  const box = await openProcessBox(place);
  if (signal.aborted) {
    box.discard();
    throw new ToolError(INTERRUPTED);
  }
  let complaint = '';
  const onStdout: OutputReader = (chunk) => {
    if (complaint.length < COMPLAINT_CHARS_MAX) complaint += chunk.toString('latin1').slice(0, COMPLAINT_CHARS_MAX);
    return spec.onOutput(chunk);
  };
  box.begin(spec.script);
  const end = await attendChildProcess(box.child, { timeoutMs, onStdout }, AbortSignal.any([signal, disk.signal]));
  const isOver = end.endedBy === 'itself' && end.exitCode !== undefined;
  if (isOver && box.child.spec.report === true && !hasSandboxStarted(end.report ?? ''))
    throw new DroverError({ kind: 'sandbox.failed', message: complaint.trim() || `it ended with ${end.exitCode}` });
  if (end.endedBy === 'itself') startProcessBoxAhead(place);
  const durationMs = Math.round(performance.now() - startedAt);
  return { ...end, durationMs, isDiskFull: disk.signal.aborted };
}

/**
 * Starts a sandbox ahead of a possible command, if boxes may wait. The user can see placeholders for protected
 * paths, so they are created only if a command is `certain`.
 */
export function prepareShellProcess(
  { cwd, env, sandbox }: Pick<TurnContext, 'cwd' | 'env' | 'sandbox'>,
  likelihood: Likelihood,
): void {
  if (sandbox === undefined) return;
  if (likelihood === 'possible' && hasUnsealedSandboxPaths(sandbox.sealed)) return;
  try {
    sealSandboxPaths(sandbox.folder, sandbox.sealed)[Symbol.dispose]();
  } catch (error) {
    // The command will meet and report the same error.
    if (error instanceof Error && 'code' in error) return;
    throw error;
  }
  startProcessBoxAhead({ sandbox, cwd, env });
}

function runShellOutsideSandbox(
  { script, onOutput, env, cwd, callId, timeoutMs }: ShellSpec,
  signal: AbortSignal,
): Promise<ChildEnd> {
  const file = findProgramOn(env['PATH'] ?? '', 'bash') === undefined ? '/bin/sh' : 'bash';
  // Use one pipe for both: two pipes would lose the order of lines.
  const args = ['-c', `exec 2>&1; ${script}`];
  return runChildProcess({ file, args, env, cwd, callId, timeoutMs, onStdout: onOutput }, signal);
}

/**
 * Rejects mounts whose path leads through a link: a session in a parent folder could create one, and a mount would
 * follow it. Paths of a policy are real when it is made.
 */
function checkShellFolders(policy: SandboxPolicy): void {
  for (const { kind, from, at } of bubblewrapMounts(policy))
    if (from === at && (kind === 'writable' || kind === 'readable') && realPathForSandbox(from) !== from)
      throw new DroverError({ kind: 'sandbox.failed', message: `${from} was replaced by a symbolic link` });
}

/**
 * Aborts when a disk that the command may write to gets nearly full. A disk that was full before does not count: the
 * command may be there to clean up.
 */
function watchDiskForShell({
  root,
  folder,
  writable,
  system,
}: SandboxPolicy): Disposable & { readonly signal: AbortSignal } {
  const full = new AbortController();
  const hasRoom = (place: string) => hasDiskRoomForShell(place, system.limits);
  const places = [root, folder, ...writable].filter(hasRoom);
  const timer = setInterval(() => {
    if (!places.every(hasRoom)) full.abort();
  }, DISK_LOOK_MS);
  return { signal: full.signal, [Symbol.dispose]: () => clearInterval(timer) };
}

// A folder that was removed cannot fill the disk. Some file systems do not count their files.
function hasDiskRoomForShell(folder: string, { diskFreeBytes, diskFreeFiles }: Limits): boolean {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(folder);
    return bavail * bsize >= diskFreeBytes && (files === 0 || ffree >= diskFreeFiles);
  } catch (error) {
    if (error instanceof Error && 'code' in error) return true;
    throw error;
  }
}
