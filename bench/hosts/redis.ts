// A Redis of a bench's own, and worker hosts at it.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newFolder } from '../folder.ts';
import { cpuMsOf, dist } from '../run/programs.ts';

const LOOK_MS = 20;

export type BenchRedis = { readonly url: string; readonly port: number; readonly pid: number };

/** Resolves when it answers. */
export async function startRedis(): Promise<BenchRedis & Disposable> {
  const port = await freePort();
  const options = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', newFolder(), '--save', ''];
  const child = spawn('redis-server', [...options, '--appendonly', 'yes'], { stdio: 'ignore' });
  const answers = () => {
    try {
      return execFileSync('redis-cli', ['-p', `${port}`, 'ping'], { stdio: ['ignore', 'pipe', 'ignore'] }).length > 0;
    } catch {
      return false; // it does not listen yet
    }
  };
  while (!answers()) await sleep(LOOK_MS);
  return { url: `redis://127.0.0.1:${port}`, port, pid: child.pid ?? 0, [Symbol.dispose]: () => void child.kill() };
}

/** A worker host that takes work. */
export async function startHost({ url }: BenchRedis, slots: number): Promise<AsyncDisposable> {
  const folder = newFolder();
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const child = spawn(
    process.execPath,
    [join(dist, 'drover.cjs'), 'worker', `--queue=${url}`, `--slots=${slots}`, '--sandbox=off'],
    {
      cwd: folder,
      env: { ...env, HOME: folder, DROVER_HOME: join(folder, 'state') },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await once(child.stdout, 'data');
  child.stdout.resume();
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

export type Spent = { readonly wallMs: number; readonly cpuMs: number };

/** Wall time of a process, and the processor time of it alone. */
export async function spentBy(child: ChildProcess): Promise<Spent> {
  const begun = performance.now();
  let cpuMs = 0;
  const look = setInterval(() => (cpuMs = cpuMsOf(child.pid ?? 0) || cpuMs), LOOK_MS);
  await once(child, 'close');
  clearInterval(look);
  return { wallMs: performance.now() - begun, cpuMs };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
