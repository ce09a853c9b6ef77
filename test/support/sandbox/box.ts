// The sandbox of this machine for tests, opened and probed once per test process.
//
// Tests that need it are skipped on a machine without one, with a line on stderr; .ci/run installs bubblewrap.

import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '@drover/core/ids';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { runShell, type ShellEnd } from '@drover/core/tools/process/run-shell';
import { type FoundSandbox, openSandbox } from '@drover/sandbox/open';
import type { Limits, SandboxPolicy, SandboxSystem } from '@drover/sandbox/policy';
import { describe, onTestFinished } from 'vitest';

const TEST_MS_MAX = 120_000;
const COMMAND_MS_MAX = 60_000;
const OUTPUT_CHARS_MAX = 50_000_000;

const SHARED = Symbol.for('drover.test.sandbox');
const shared = globalThis as { [SHARED]?: Promise<FoundSandbox> };

export const FOUND: FoundSandbox = await (shared[SHARED] ??= open());

async function open(): Promise<FoundSandbox> {
  const state = mkdtempSync(join(tmpdir(), 'drover-test-sandbox-'));
  process.once('exit', () => rmSync(state, { recursive: true, force: true }));
  const { platform, arch: architecture, execPath: node, env } = process;
  return openSandbox({ state, env, node, platform, architecture });
}

/** Tests that need a sandbox. */
export function inSandbox(title: string, tests: (system: SandboxSystem) => void): void {
  if (FOUND.works) {
    const { system } = FOUND;
    describe(title, { timeout: TEST_MS_MAX }, () => tests(system));
    return;
  }
  process.stderr.write(`\n*** LEFT OUT, for want of a sandbox: ${title}. ${FOUND.missing}; ${FOUND.fix}.\n\n`);
  describe.runIf(false)(title, () => undefined);
}

export type BoxOptions = Partial<Omit<SandboxPolicy, 'system' | 'folder'>> & {
  readonly home?: string;
  readonly limits?: Partial<Limits>;
};

export type Box = {
  readonly policy: SandboxPolicy;
  readonly root: string;
  /** Contains the box's root and its other files; commands see only the root. */
  readonly around: string;
};

/** A policy for a temporary folder that is removed after the test. */
export function box(system: SandboxSystem, { home, limits, ...options }: BoxOptions = {}): Box {
  const around = temporary();
  const root = options.root ?? join(around, 'root');
  const folder = join(around, 'private');
  for (const path of [root, join(folder, 'home'), join(folder, 'tmp')]) mkdirSync(path, { recursive: true });
  const policy: SandboxPolicy = {
    readable: [],
    writable: [],
    sealed: [],
    hidden: [],
    groups: [],
    ...options,
    system: { ...system, home: home ?? system.home, limits: { ...system.limits, ...limits } },
    root,
    folder,
  };
  return { policy, root, around };
}

/** A temporary folder outside /tmp if possible, since a sandbox has its own /tmp. Removed after the test. */
export function temporary(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'drover-box-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export type Ran = ShellEnd & { readonly output: string };

export type Way = {
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
};

/** Runs a command as the shell tool does. */
export function runInside({ policy, root }: Pick<Box, 'policy' | 'root'>, script: string, way?: Way): Promise<Ran> {
  return run(script, root, policy, way);
}

export function runOutside(cwd: string, script: string, way?: Way): Promise<Ran> {
  return run(script, cwd, undefined, way);
}

async function run(
  script: string,
  cwd: string,
  sandbox: SandboxPolicy | undefined,
  { env = childProcessEnvironment(process.env), timeoutMs = COMMAND_MS_MAX }: Way = {},
): Promise<Ran> {
  const chunks: Buffer[] = [];
  let size = 0;
  const onOutput = (chunk: Buffer): undefined => {
    // The chunk is reused after this call.
    if (size < OUTPUT_CHARS_MAX) chunks.push(Buffer.from(chunk));
    size += chunk.length;
  };
  const never = new AbortController().signal;
  const end = await runShell({ script, cwd, env, sandbox, callId: newId('call'), timeoutMs, onOutput }, never);
  return { ...end, output: Buffer.concat(chunks).toString() };
}
