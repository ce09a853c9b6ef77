// Launcher of a run: a small process that starts commands. It starts early, while forking is cheap.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LauncherAddress } from '@drover/core/tools/process/launcher';
import { launchProcessesWith } from '@drover/core/tools/process/start';
import { bestEffort } from '@drover/core/promises';

// In MB. A launcher keeps next to nothing in memory.
const SMALL_HEAP = ['--max-semi-space-size=1', '--heap-growing-percent=20'];
const isSource = import.meta.url.endsWith('.ts');
const entry = fileURLToPath(new URL(isSource ? '../launcher.ts' : './launcher.cjs', import.meta.url));

export type RunLauncher = {
  /** Where the launcher listens. Until it does, and if it can't, threads start their processes themselves. */
  readonly address: LauncherAddress;
  readonly pid: number | undefined;
  /** Kills the launcher at once, for a process that is about to exit. */
  readonly kill: () => void;
  readonly close: () => Promise<void>;
};

export function openLauncher(surroundings: Readonly<Record<string, string>>): RunLauncher {
  // The launcher needs no certificates, and Node would read them at startup.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = surroundings;
  // mkdtemp makes a folder that only this user can read.
  const path = join(mkdtempSync(join(tmpdir(), 'drover-launcher-')), 'launcher');
  // The launcher ends when its input closes, so it ends with this process, even after a crash.
  const child = spawn(process.execPath, [...SMALL_HEAP, entry, path], {
    // The launcher must hold neither the user's folder nor the terminal.
    cwd: '/',
    detached: true,
    env,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const gone = bestEffort(once(child, 'exit'));
  child.stdin.on('error', () => undefined);
  child.unref();
  // Pass the secret on stdin: every process on the machine can read arguments.
  const address = { path, secret: randomBytes(32).toString('hex') };
  child.stdin.write(`${address.secret}\n`);
  const before = launchProcessesWith(address);
  const kill = () => {
    child.kill('SIGKILL');
    rmSync(dirname(path), { recursive: true, force: true });
  };
  return {
    address,
    pid: child.pid,
    kill,
    async close() {
      launchProcessesWith(before);
      child.kill('SIGKILL');
      // Keep this process alive until the launcher has exited.
      child.ref();
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) await gone;
      kill();
    },
  };
}
