// A real Redis of a test's own: on a free port of loopback, with its files in a temporary folder.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, onTestFinished } from 'vitest';
import { runSync } from '../process/run-sync.ts';
import { findProgram } from '../process/programs.ts';
import { temporaryFolder } from '../workspace.ts';

const SERVER = findProgram(['redis-server']);
const LOOK_MS = 20;

/** A group of tests that need Redis. Without it they are left out, and a line says so. */
export function withRedis(title: string, tests: () => void): void {
  if (SERVER === undefined)
    process.stderr.write(`\n*** LEFT OUT, for want of redis-server: ${title}. Install it, or put it on the PATH.\n\n`);
  describe.skipIf(SERVER === undefined)(title, tests);
}

export type RedisWish = {
  /** Arguments of redis-server. */
  readonly options?: readonly string[];
  readonly password?: string;
};

export class Redis {
  readonly port: number;
  readonly #password: string;
  readonly #folder: string;
  readonly #options: readonly string[];
  #child: ChildProcess | undefined;

  private constructor(port: number, folder: string, { options = [], password = '' }: RedisWish) {
    this.port = port;
    this.#password = password;
    this.#folder = folder;
    this.#options = [...options, ...(password === '' ? [] : ['--requirepass', password])];
  }

  static async start(wish: RedisWish = {}): Promise<Redis> {
    const redis = new Redis(await freePort(), await temporaryFolder(), wish);
    onTestFinished(() => redis.kill());
    await redis.begin();
    return redis;
  }

  get url(): string {
    const user = this.#password === '' ? '' : `:${encodeURIComponent(this.#password)}@`;
    return `redis://${user}127.0.0.1:${this.port}`;
  }

  async begin(): Promise<void> {
    const { port } = this;
    const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', this.#folder, '--save', ''];
    const durable = ['--appendonly', 'yes', '--appendfsync', 'everysec'];
    this.#child = spawn(SERVER ?? '', [...settings, ...durable, ...this.#options], { stdio: 'ignore' });
    for (;;) {
      try {
        if (this.cli('ping') !== '') return;
      } catch {
        await sleep(LOOK_MS); // it does not listen yet
      }
    }
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Loses everything. */
  async wipe(): Promise<void> {
    await this.kill();
    await rm(join(this.#folder, 'appendonlydir'), { recursive: true, force: true });
    await this.begin();
  }

  cli(...args: readonly string[]): string {
    const user = this.#password === '' ? [] : ['-a', this.#password, '--no-auth-warning'];
    return runSync('redis-cli', ['-p', `${this.port}`, ...user, ...args], { cwd: '/' })
      .toString()
      .trim();
  }

  /** Records every command from now on. The returned function ends it. */
  record(): () => Promise<string> {
    const monitor = spawn('redis-cli', ['-p', `${this.port}`, 'monitor'], { stdio: ['ignore', 'pipe', 'ignore'] });
    const recorded = text(monitor.stdout);
    onTestFinished(() => void monitor.kill('SIGKILL'));
    return async () => {
      monitor.kill('SIGTERM');
      return recorded;
    };
  }

  keys(): readonly string[] {
    return this.cli('keys', '*')
      .split('\n')
      .filter((key) => key !== '');
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
