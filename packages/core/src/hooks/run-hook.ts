// Runs one hook: its input is JSON on standard input, and its exit code is the answer.
//
// Guarantees
//   1. Exit code 0 lets the call continue, 2 blocks it with standard error as the reason. Any other end, a timeout too,
//      is a problem that names the hook, and blocks nothing.
//   2. A hook of a project runs only inside a sandbox; without one it does not run.
//   3. Output is bounded, and every process of the hook ends with it.

import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@drover/protocol/json';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { ToolError } from '../errors.ts';
import { newId } from '../ids.ts';
import { type ChildEnd, runChildProcess } from '../tools/process/child.ts';
import { findProgramOn } from '../tools/process/program.ts';
import { runShell } from '../tools/process/run-shell.ts';
import { blockingReasonOfHook } from './claude-form.ts';
import { type Hook, hookName } from './hook.ts';

const OUTPUT_BYTES_MAX = 64 * 1024;
const REASON_CHARS_MAX = 4_000;

export type HookPlace = {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly sandbox: SandboxPolicy | undefined;
};

/** `words` begin with the name of the hook. */
export type HookEnd =
  | { readonly kind: 'go' }
  | { readonly kind: 'block'; readonly reason: string; readonly words: string }
  | { readonly kind: 'problem'; readonly words: string };

/** Throws DroverError if the sandbox does not start. */
export async function runHook(running: HookRun, signal: AbortSignal): Promise<HookEnd> {
  return hookEnd(running.hook, await hookOutcome(running, signal));
}

export type HookRun = { readonly hook: Hook; readonly input: JsonObject; readonly place: HookPlace };

type Ended = { readonly end: ChildEnd; readonly stdout: string; readonly stderr: string };

async function hookOutcome(running: HookRun, signal: AbortSignal): Promise<Ended | string> {
  const { hook, place } = running;
  if (!hook.isOwn && place.sandbox === undefined)
    return 'was not run: there is no sandbox, and a hook of a project runs only inside one';
  try {
    return await (hook.isOwn
      ? runHookOutsideSandbox(running, signal)
      : runHookInSandbox(running, place.sandbox, signal));
  } catch (error) {
    if (error instanceof ToolError) return `could not be run: ${error.message}`;
    throw error;
  }
}

function hookEnd(hook: Hook, ended: Ended | string): HookEnd {
  const name = hookName(hook);
  if (typeof ended === 'string') return { kind: 'problem', words: `${name} ${ended}` };
  const { end, stdout, stderr } = ended;
  const said = stderr.trim().slice(-REASON_CHARS_MAX);
  if (end.endedBy === 'timeout')
    return { kind: 'problem', words: `${name} was ended after ${hook.timeoutMs / 1_000} s, its time limit` };
  const reason =
    end.exitCode === 2 ? said || 'it gave no reason' : end.exitCode === 0 ? blockingReasonOfHook(stdout) : undefined;
  if (reason !== undefined) {
    const short = reason.slice(0, REASON_CHARS_MAX);
    return { kind: 'block', reason: short, words: `${name} says: ${short}` };
  }
  if (end.exitCode === 0 || end.endedBy === 'abort') return { kind: 'go' };
  const how = end.exitCode === undefined ? `was ended by ${end.signal ?? 'a signal'}` : `ended with ${end.exitCode}`;
  return { kind: 'problem', words: `${name} ${how}${said === '' ? '' : `: ${said}`}` };
}

async function runHookOutsideSandbox({ hook, input, place }: HookRun, signal: AbortSignal): Promise<Ended> {
  const { cwd, env } = place;
  const file = findProgramOn(env['PATH'] ?? '', 'bash') === undefined ? '/bin/sh' : 'bash';
  const [out, err] = [new Bounded(), new Bounded()];
  const start = { file, args: ['-c', hook.command], cwd, env: hookEnvironment(place), callId: newId('call') };
  const end = await runChildProcess(
    { ...start, input: JSON.stringify(input), timeoutMs: hook.timeoutMs, onStdout: out.take, onStderr: err.take },
    signal,
  );
  return { end, stdout: out.text, stderr: err.text };
}

/** The shell of a sandbox has one output and no input, so a script around the command provides both. */
async function runHookInSandbox(
  { hook, input, place }: HookRun,
  sandbox: SandboxPolicy | undefined,
  signal: AbortSignal,
): Promise<Ended> {
  const mark = `drover_${randomBytes(12).toString('hex')}`;
  const output = new Bounded();
  const script = [
    `drover_command="$(cat <<'${mark}'`,
    hook.command,
    mark,
    ')"',
    'drover_errors="$(mktemp)"',
    `"\${BASH:-/bin/sh}" -c "$drover_command" 2>"$drover_errors" <<'${mark}'`,
    JSON.stringify(input),
    mark,
    'drover_code=$?',
    `printf '\\n%s\\n' ${mark}`,
    `head -c ${OUTPUT_BYTES_MAX / 2} "$drover_errors"`,
    'rm -f "$drover_errors"',
    'exit "$drover_code"',
  ].join('\n');
  const end = await runShell(
    {
      script,
      cwd: place.cwd,
      env: hookEnvironment(place),
      sandbox,
      callId: newId('call'),
      timeoutMs: hook.timeoutMs,
      onOutput: output.take,
    },
    signal,
  );
  const [stdout = '', stderr = ''] = output.text.split(`\n${mark}\n`);
  return { end, stdout, stderr };
}

function hookEnvironment({ env, cwd }: HookPlace): Record<string, string> {
  return { ...env, DROVER_PROJECT_DIR: cwd, CLAUDE_PROJECT_DIR: cwd };
}

/** Keeps the end of an output. */
class Bounded {
  #bytes = Buffer.alloc(0);

  readonly take = (chunk: Buffer): undefined => {
    this.#bytes = Buffer.concat([this.#bytes, chunk]).subarray(-OUTPUT_BYTES_MAX);
  };

  get text(): string {
    return this.#bytes.toString('utf8');
  }
}
