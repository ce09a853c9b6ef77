// The process of a server: started in the sandbox if there is one, and ended with all that it started.
//
// Guarantees
//   1. In the sandbox, every process of the server ends with drover, also after kill -9: the kernel sees to it.
//   2. Without a sandbox the server is in a process group of its own, and each of its processes carries a mark by which
//      the next drover finds what a killed one left (leftovers.ts).
//   3. `end` asks first: the end of its input, TERM after a grace period, then KILL.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { confineSandboxProgram, hasSandboxStarted } from '@drover/sandbox/sandbox';
import { sealSandboxPaths } from '@drover/sandbox/seal';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import {
  openLauncherFiles,
  launchedProcessEnd,
  type ProcessEnd,
  type ProcessSpec,
} from '@drover/core/tools/process/launcher';
import { findProgramOn, pathOfTrustedPrograms } from '@drover/core/tools/process/program';
import { MARK, processMarkOf, ProcessTree } from '@drover/core/tools/process/tree';
import { pause } from '@drover/core/promises';

const INPUT_GRACE_MS = 2_000;
const TERM_GRACE_MS = 1_000;
const KILL_ROUNDS_MAX = 20;
const LOOK_AGAIN_MS = 20;

export type ServerStart = {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly sandbox: SandboxPolicy | undefined;
  /** Marks its processes; unique. */
  readonly mark: string;
};

export type ServerProcess = {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves to a sentence once the process is gone. */
  readonly gone: Promise<string>;
  /** Resolves when no process of the server is alive. Idempotent. */
  readonly end: () => Promise<void>;
};

/** Throws the error of Node's spawn if the program cannot be started. */
export async function startMcpServerProcess(start: ServerStart): Promise<ServerProcess> {
  const { sandbox, mark } = start;
  const links = sandbox === undefined ? undefined : sealSandboxPaths(sandbox.folder, sandbox.sealed);
  const spec = mcpProcessSpec(start);
  using files = openLauncherFiles(spec.files ?? []);
  const child = spawn(spec.file, spec.args, {
    cwd: spec.cwd,
    env: { ...spec.env, [MARK]: processMarkOf(mark) },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', ...files.descriptors, ...(spec.report === true ? ['pipe' as const] : [])],
  });
  const { pid, stdin, stdout, stderr } = child;
  if (pid === undefined || stdin === null || stdout === null || stderr === null) {
    links?.[Symbol.dispose]();
    return new Promise((_, reject) => {
      child.once('error', reject);
    });
  }
  // The server may end before it reads; its exit is reported separately.
  stdin.on('error', () => undefined);
  child.on('error', () => undefined);
  const ended = launchedProcessEnd(child, spec).finally(() => links?.[Symbol.dispose]());
  let ending: Promise<void> | undefined;
  const tree = new ProcessTree(pid, mark, spec.report === true);
  return {
    pid,
    stdin,
    stdout,
    stderr,
    gone: ended.then((end) => wordMcpProcessEnd(end, spec.report === true)),
    end: () => (ending ??= endMcpProcess(child, ended, tree)),
  };
}

function mcpProcessSpec({ command, args, env, cwd, sandbox }: ServerStart): ProcessSpec {
  if (sandbox !== undefined) {
    const confined = confineSandboxProgram(sandbox, env, { argv: [command, ...args], cwd });
    return { ...confined, cwd: sandbox.root, detached: true };
  }
  const PATH = pathOfTrustedPrograms(env['PATH'] ?? '');
  const file = command.includes('/') ? command : (findProgramOn(PATH, command) ?? command);
  return { file, args, env: { ...env, PATH }, cwd, detached: true };
}

function wordMcpProcessEnd({ exitCode, signal, report }: ProcessEnd, isContained: boolean): string {
  if (isContained && !hasSandboxStarted(report ?? '') && signal === undefined) return 'its sandbox did not start';
  return exitCode === undefined ? `it was ended by ${signal ?? 'a signal'}` : `it ended with exit code ${exitCode}`;
}

async function endMcpProcess({ stdin }: ChildProcess, ended: Promise<unknown>, tree: ProcessTree): Promise<void> {
  stdin?.end();
  await mcpProcessEndWithin(INPUT_GRACE_MS, ended);
  let alive = tree.look();
  tree.signal(alive, 'SIGTERM');
  for (let waited = 0; alive.length > 0 && waited < TERM_GRACE_MS; waited += LOOK_AGAIN_MS) {
    await pause(LOOK_AGAIN_MS, NEVER);
    alive = tree.look();
  }
  for (let round = 0; alive.length > 0 && round < KILL_ROUNDS_MAX; round++) {
    tree.signal(alive, 'SIGKILL');
    await pause(LOOK_AGAIN_MS, NEVER);
    alive = tree.look();
  }
  await mcpProcessEndWithin(INPUT_GRACE_MS, ended);
}

const NEVER = new AbortController().signal;

async function mcpProcessEndWithin(ms: number, settled: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  await Promise.race([settled, pause(ms, timer.signal)]);
  timer.abort();
}
