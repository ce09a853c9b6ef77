// A command of the user's, run by a shell to its end in a workspace: whether it passed, and what it printed.

import { join } from 'node:path';
import { failureOf } from '@drover/core/agent/limits';
import { DroverError, ToolError } from '@drover/core/failure';
import { newId } from '@drover/core/ids';
import { Capture } from '@drover/core/tools/output/capture';
import { type ChildEnd, runChild } from '@drover/core/tools/process/child';

const COMMAND_MS_MAX = 30 * 60_000;
const TAIL_CHARS_MAX = 4_000;

export type CommandPlace = {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly outputFolder: string; // for output that is too long for an event
};

export type CommandEnd = {
  readonly passed: boolean;
  readonly isTimeout: boolean;
  readonly durationMs: number;
  readonly output: string;
};

/** Throws where it is stopped by the signal. */
export async function runCommand(command: string, place: CommandPlace, signal: AbortSignal): Promise<CommandEnd> {
  const { cwd, env, outputFolder } = place;
  const callId = newId('call');
  const capture = new Capture(join(outputFolder, `${callId}.txt`));
  const keep = (chunk: Buffer) => capture.write(chunk);
  // One pipe for both, since between two the order of lines is lost.
  const child = { file: 'bash', args: ['-c', `exec 2>&1; ${command}`], cwd, env, callId, timeoutMs: COMMAND_MS_MAX };
  const end = await runChild({ ...child, onStdout: keep }, signal).catch((error: unknown) => {
    if (error instanceof ToolError) return error.message;
    throw error;
  });
  const { text } = await capture.finish();
  if (signal.aborted) throw new DroverError(failureOf(signal));
  // No bash is like any other command that can't pass.
  if (typeof end === 'string') return { passed: false, isTimeout: false, durationMs: 0, output: end };
  const output = [text.trimEnd(), endWords(end)].filter((part) => part !== '').join('\n');
  const isTimeout = end.endedBy === 'timeout';
  return { passed: end.exitCode === 0 && !isTimeout, isTimeout, durationMs: end.durationMs, output };
}

/** The end of what it printed: tools put the verdict last. */
export function tailOf(output: string): string {
  return output.length <= TAIL_CHARS_MAX ? output : `[…] ${output.slice(-TAIL_CHARS_MAX).toWellFormed()}`;
}

function endWords({ endedBy, exitCode, signal }: ChildEnd): string {
  if (endedBy === 'timeout') return `ended because it took longer than ${COMMAND_MS_MAX / 60_000} minutes`;
  if (exitCode === 0) return '';
  if (exitCode === 127) return 'a command was not found (exit code 127)';
  return exitCode === undefined ? `ended by ${signal ?? 'a signal'}` : `exit code ${exitCode}`;
}
