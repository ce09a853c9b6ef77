// Runs a shell command to its end: inside the sandbox where there is one, in the open where the caller says so.
//
// Guarantees
//   1. With a sandbox the command never runs outside it. A sandbox that does not start is a DroverError, whatever was
//      printed; the caller never mistakes it for a result of the command.
//   2. stdout and stderr come as one stream, in the order they were written.
//   3. A command that would fill the disk is ended while there is still room for drover's own files.

import { lstatSync, statfsSync } from 'node:fs';
import { hasStarted } from '@drover/sandbox/sandbox';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { sealPaths, hasUnsealed } from '@drover/sandbox/seal';
import { DroverError, ToolError } from '../../errors.ts';
import { openBox, startAhead } from './boxes.ts';
import { attendChild, type ChildEnd, type OutputReader, runChild } from './child.ts';
import type { Likelihood, TurnContext } from '../tool.ts';
import { programOn } from './program.ts';

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

/** Throws ToolError where there is no shell, and DroverError where the sandbox did not start. */
export async function runShell(spec: ShellSpec, signal: AbortSignal): Promise<ShellEnd> {
  const { sandbox } = spec;
  if (sandbox === undefined) return { ...(await runOutside(spec, signal)), isDiskFull: false };
  checkFolders(sandbox);
  using _links = sealPaths(sandbox.folder, sandbox.sealed);
  using disk = watchDisk(sandbox);
  if (signal.aborted) throw new ToolError(INTERRUPTED);
  const startedAt = performance.now();
  const { cwd, env, callId, timeoutMs } = spec;
  const place = { sandbox, cwd, env, callId };
  const box = await openBox(place);
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
  const end = await attendChild(box.child, { timeoutMs, onStdout }, AbortSignal.any([signal, disk.signal]));
  const isOver = end.endedBy === 'itself' && end.exitCode !== undefined;
  if (isOver && box.child.spec.report === true && !hasStarted(end.report ?? ''))
    throw new DroverError({ kind: 'sandbox.failed', message: complaint.trim() || `it ended with ${end.exitCode}` });
  if (end.endedBy === 'itself') startAhead(place);
  const durationMs = Math.round(performance.now() - startedAt);
  return { ...end, durationMs, isDiskFull: disk.signal.aborted };
}

/**
 * Starts the sandbox of a command that may follow, where boxes are kept. Placeholders for protected paths are seen by the
 * user, so they are made only if a command is `certain`.
 */
export function prepareShell(
  { cwd, env, sandbox }: Pick<TurnContext, 'cwd' | 'env' | 'sandbox'>,
  likelihood: Likelihood,
): void {
  if (sandbox === undefined) return;
  if (likelihood === 'possible' && hasUnsealed(sandbox.sealed)) return;
  try {
    sealPaths(sandbox.folder, sandbox.sealed)[Symbol.dispose]();
  } catch (error) {
    // The command fails of it too, and reports it.
    if (error instanceof Error && 'code' in error) return;
    throw error;
  }
  startAhead({ sandbox, cwd, env });
}

function runOutside(
  { script, onOutput, env, cwd, callId, timeoutMs }: ShellSpec,
  signal: AbortSignal,
): Promise<ChildEnd> {
  const file = programOn(env['PATH'] ?? '', 'bash') === undefined ? '/bin/sh' : 'bash';
  // One pipe for both, since between two the order of lines is lost.
  const args = ['-c', `exec 2>&1; ${script}`];
  return runChild({ file, args, env, cwd, callId, timeoutMs, onStdout: onOutput }, signal);
}

/** A session in a folder above can put a link in the place of a folder, and a mount would follow it. */
function checkFolders({ root, writable }: SandboxPolicy): void {
  for (const path of [root, ...writable])
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true)
      throw new DroverError({ kind: 'sandbox.failed', message: `${path} was replaced by a symbolic link` });
}

/** Aborts when the disk is nearly full and this command may be why: it was not so when it began. */
function watchDisk({ root, system }: SandboxPolicy): Disposable & { readonly signal: AbortSignal } {
  const full = new AbortController();
  const isFull = () => freeBytes(root) < system.limits.diskFreeBytes;
  if (isFull()) return { signal: full.signal, [Symbol.dispose]: () => undefined };
  const timer = setInterval(() => {
    if (isFull()) full.abort();
  }, DISK_LOOK_MS);
  return { signal: full.signal, [Symbol.dispose]: () => clearInterval(timer) };
}

// A folder that was removed under its command fills no disk.
function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return Infinity;
    throw error;
  }
}
