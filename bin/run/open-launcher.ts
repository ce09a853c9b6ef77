// The launcher of a run: started while the run is small, and gone before it.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LauncherAddress } from '@drover/core/tools/process/launcher';
import { launchWith } from '@drover/core/tools/process/start';

const isSource = import.meta.url.endsWith('.ts');
const entry = fileURLToPath(new URL(isSource ? '../launcher.ts' : './launcher.cjs', import.meta.url));

export type RunLauncher = {
  /** Where it listens, once it does. Until then, and where it can't, threads start their processes themselves. */
  readonly address: LauncherAddress;
  readonly pid: number | undefined;
  /** For a process that is about to end: nothing more is started by it. */
  readonly kill: () => void;
  readonly close: () => Promise<void>;
};

export function openLauncher(surroundings: Readonly<Record<string, string>>): RunLauncher {
  // Certificates are read at the start, and it has no use for them.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = surroundings;
  // Nobody else can look into it.
  const path = join(mkdtempSync(join(tmpdir(), 'drover-launcher-')), 'launcher');
  // It listens for as long as its input is open, so it ends with this process however that ends.
  const child = spawn(process.execPath, [entry, path], {
    // Neither the user's folder nor the terminal is held by it.
    cwd: '/',
    detached: true,
    env,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const gone = once(child, 'exit').catch(() => undefined);
  child.stdin.on('error', () => undefined);
  child.unref();
  // Not as an argument, which every process of the machine can read.
  const address = { path, secret: randomBytes(32).toString('hex') };
  child.stdin.write(`${address.secret}\n`);
  const before = launchWith(address);
  const kill = () => {
    child.kill('SIGKILL');
    rmSync(dirname(path), { recursive: true, force: true });
  };
  return {
    address,
    pid: child.pid,
    kill,
    async close() {
      launchWith(before);
      child.kill('SIGKILL');
      // Nothing else may keep this process waiting, and what follows is not to be missed.
      child.ref();
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) await gone;
      kill();
    },
  };
}
