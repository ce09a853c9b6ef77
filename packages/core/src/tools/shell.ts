// shell: runs a command in the workspace, inside the sandbox if there is one.
//
// Guarantees
//   1. The command gets no stdin, no provider keys and no terminal.
//   2. stdout and stderr arrive as one text, in the order they were written.
//   3. Every process that the command started is ended with it.

import { sandboxHintsFor } from '@drover/sandbox/hints';
import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { Deltas } from './output/deltas.ts';
import { Capture } from './output/capture.ts';
import { gitSafeCommandEnvironment } from './process/git-environment.ts';
import { prepareShellProcess, runShell, type ShellEnd } from './process/run-shell.ts';
import { defineTool, toolOutputFile, type ToolContext, type ToolEvent } from './tool.ts';

const TIMEOUT_MS = 120_000;
const TIMEOUT_MS_MAX = 1_800_000;
// Linux limits the length of one argument.
const COMMAND_BYTES_MAX = 120_000;

export const shell = defineTool({
  name: 'shell',
  description:
    'Run a bash command in the workspace. No stdin; stdout and stderr together; background processes end with the command.',
  input: z.strictObject({
    command: z.string().check(z.minLength(1)),
    timeoutMs: z.optional(z.int().check(z.gte(1), z.lte(TIMEOUT_MS_MAX), z.describe(`Default ${TIMEOUT_MS}.`))),
  }),
  access: 'run',
  subject: ({ command }) => command,
  prepare: (context, likelihood) =>
    prepareShellProcess({ ...context, env: gitSafeCommandEnvironment(context.env) }, likelihood),
  run: ({ command, timeoutMs = TIMEOUT_MS }, context) => runShellTool(command, timeoutMs, context),
});

async function* runShellTool(command: string, timeoutMs: number, context: ToolContext): AsyncGenerator<ToolEvent> {
  if (Buffer.byteLength(command) > COMMAND_BYTES_MAX) {
    throw new ToolError(`the command is longer than ${COMMAND_BYTES_MAX} bytes: write it to a file and run that`);
  }
  const capture = new Capture(toolOutputFile(context));
  const deltas = new Deltas();
  // Ends the command if the consumer stops iterating early, which returns from the loop below.
  const left = new AbortController();
  const keep = (chunk: Buffer) => {
    deltas.push(chunk);
    return capture.write(chunk);
  };
  const { cwd, callId, sandbox } = context;
  const env = gitSafeCommandEnvironment(context.env);
  const running = runShell(
    { script: command, cwd, env, sandbox, callId, timeoutMs, onOutput: keep },
    AbortSignal.any([context.signal, left.signal]),
  ).finally(() => deltas.close());

  try {
    for await (const delta of deltas) yield { type: 'delta', delta };
    const end = await running;
    const { text, lines } = await capture.finish();
    const { exitCode, signal, durationMs } = end;
    yield {
      type: 'complete',
      output: shellToolText(text, [
        ...shellToolVerdict(end, timeoutMs),
        ...shellToolHints({ text, command, end }, context),
      ]),
      ...((end.endedBy !== 'itself' || exitCode !== 0) && { isError: true }),
      details: {
        ...(exitCode !== undefined && { exitCode }),
        ...(signal !== undefined && { signal }),
        ...(lines !== undefined && { lines }),
        durationMs,
      },
    };
  } finally {
    left.abort();
  }
}

function shellToolText(text: string, notes: readonly string[]): string {
  const trimmed = text.replace(/\n+$/, '');
  const lines = [trimmed === '' ? '(no output)' : trimmed, ...notes.map((note) => `[${note}]`)];
  return lines.join('\n');
}

type Ran = { readonly text: string; readonly command: string; readonly end: ShellEnd };

/** Returns the options with which the user could allow what a failed command needed. */
function shellToolHints({ text, command, end }: Ran, { sandbox }: ToolContext): readonly string[] {
  return sandbox === undefined || end.exitCode === 0 ? [] : sandboxHintsFor(text, command, sandbox);
}

function shellToolVerdict(end: ShellEnd, timeoutMs: number): readonly string[] {
  if (end.isDiskFull) return ['stopped because the disk is nearly full: remove what is not needed'];
  switch (end.endedBy) {
    case 'abort':
      return ['interrupted'];
    case 'timeout':
      return [`stopped after ${timeoutMs / 1_000} s: give more with timeoutMs, up to ${TIMEOUT_MS_MAX}`];
    case 'itself':
      return [
        ...(end.signal === undefined ? [] : [`ended by ${end.signal}`]),
        ...(end.exitCode === undefined || end.exitCode === 0 ? [] : [`exit code ${end.exitCode}`]),
        ...(end.leftBehind === 0
          ? []
          : [`ended what it left running: ${end.leftBehind} ${end.leftBehind === 1 ? 'process' : 'processes'}`]),
      ];
  }
}
