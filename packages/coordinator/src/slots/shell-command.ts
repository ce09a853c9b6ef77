// Runs a user's command to its end in a workspace, sandboxed if possible: returns whether it passed, and its output.

import { join } from 'node:path';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { DroverError, ToolError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import { Capture } from '@drover/core/tools/output/capture';
import { runShell, type ShellEnd } from '@drover/core/tools/process/run-shell';
import { sandboxHintsFor } from '@drover/sandbox/hints';
import type { SandboxPolicy } from '@drover/sandbox/policy';

const COMMAND_MS_MAX = 30 * 60_000;
const TAIL_CHARS_MAX = 4_000;

export type CommandPlace = {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly outputFolder: string; // folder for output that is too long for an event
  readonly sandbox: SandboxPolicy | undefined;
};

export type CommandEnd = {
  readonly passed: boolean;
  readonly isTimeout: boolean;
  readonly durationMs: number;
  readonly output: string;
};

/** Throws DroverError if the signal aborts or the sandbox does not start. */
export async function runSlotCommand(command: string, place: CommandPlace, signal: AbortSignal): Promise<CommandEnd> {
  const { cwd, env, outputFolder, sandbox } = place;
  const callId = newId('call');
  const capture = new Capture(join(outputFolder, `${callId}.txt`));
  const keep = (chunk: Buffer) => capture.write(chunk);
  const spec = { script: command, cwd, env, sandbox, callId, timeoutMs: COMMAND_MS_MAX, onOutput: keep };
  const end = await runShell(spec, signal).catch((error: unknown) => {
    if (error instanceof ToolError) return error.message;
    throw error;
  });
  const { text } = await capture.finish();
  if (signal.aborted) throw new DroverError(turnFailureOfSignal(signal));
  // Without bash the command fails like any other.
  if (typeof end === 'string') return { passed: false, isTimeout: false, durationMs: 0, output: end };
  const hints = sandbox === undefined || end.exitCode === 0 ? [] : sandboxHintsFor(text, command, sandbox);
  const output = [text.trimEnd(), slotCommandEndWords(end), ...hints].filter((part) => part !== '').join('\n');
  const isTimeout = end.endedBy === 'timeout';
  return { passed: end.exitCode === 0 && !isTimeout, isTimeout, durationMs: end.durationMs, output };
}

/** The end of the output, because tools print the verdict last. */
export function tailOfSlotOutput(output: string): string {
  return output.length <= TAIL_CHARS_MAX ? output : `[…] ${output.slice(-TAIL_CHARS_MAX).toWellFormed()}`;
}

function slotCommandEndWords({ endedBy, exitCode, signal, isDiskFull }: ShellEnd): string {
  if (isDiskFull) return 'ended because the disk is nearly full';
  if (endedBy === 'timeout') return `ended because it took longer than ${COMMAND_MS_MAX / 60_000} minutes`;
  if (exitCode === 0) return '';
  if (exitCode === 127) return 'a command was not found (exit code 127)';
  return exitCode === undefined ? `ended by ${signal ?? 'a signal'}` : `exit code ${exitCode}`;
}
