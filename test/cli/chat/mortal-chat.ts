// A chat as a process of its own, which a test kills. Its streams look like a terminal.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { LAUNCHER } from '../program.ts';

const AS_TERMINAL = fileURLToPath(new URL('../../support/process/as-terminal.ts', import.meta.url));

type Place = { readonly cwd: string; readonly env: Readonly<Record<string, string>> };

export class MortalChat {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  #output = '';

  constructor(args: readonly string[], { cwd, env }: Place) {
    const all = { PATH: process.env['PATH'], TERM: 'xterm', NO_COLOR: '1', ...env };
    const argv = ['--import', AS_TERMINAL, LAUNCHER, ...args];
    this.#child = spawn(process.execPath, argv, { cwd, env: all, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdout.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
    onTestFinished(() => void this.#child.kill('SIGKILL'));
  }

  press(keys: string): void {
    this.#child.stdin.write(keys);
  }

  async printed(text: string): Promise<void> {
    while (!this.#output.includes(text)) {
      if (this.#child.stdout.closed) throw new Error(`ended without printing ${text}: ${this.#output}`);
      await Promise.race([once(this.#child.stdout, 'data'), once(this.#child.stdout, 'close')]);
    }
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended();
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** The exit code; null after a signal. */
  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit');
    return this.#child.exitCode;
  }
}
