// Runs drover as a separate process, for tests of signals, pipes, exit codes and children.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';
import { withoutNotice } from './fake-io.ts';

export const LAUNCHER = fileURLToPath(new URL('../../bin/drover.cjs', import.meta.url));

export type Ended = {
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
};

type ProgramOptions = { readonly node?: string; readonly env?: Readonly<Record<string, string>> };

export class Program {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  stdout = '';
  stderr = '';
  readonly #closed: Promise<unknown>;
  #isReading = true;

  /** HOME is `cwd`, so this machine's config is not read. */
  constructor(args: readonly string[], cwd: string, { node = process.execPath, env = {} }: ProgramOptions = {}) {
    const all = { PATH: process.env['PATH'], HOME: cwd, ...env };
    this.child = spawn(node, [LAUNCHER, ...args], { cwd, env: all, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    this.child.stderr.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.#closed = once(this.child, 'exit');
    onTestFinished(() => void this.child.kill('SIGKILL'));
  }

  /** Waits until the program has printed this text. */
  async printed(text: string): Promise<void> {
    while (!this.stdout.includes(text)) {
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`ended without printing ${text}: ${this.stdout}${this.stderr}`);
      await Promise.race([once(this.child.stdout, 'data'), this.#closed]);
    }
  }

  /** Stops reading its output without closing it. */
  stopReading(): void {
    this.#isReading = false;
    this.child.stdout.pause();
  }

  /** Waits for the program to exit. The time limit starts now. */
  async ended(): Promise<Ended> {
    const begun = performance.now();
    await this.#closed;
    const ms = performance.now() - begun;
    if (this.#isReading && !this.child.stdout.closed) await once(this.child.stdout, 'close');
    return { code: this.child.exitCode ?? undefined, stdout: this.stdout, stderr: withoutNotice(this.stderr), ms };
  }
}

/** The processes whose command line contains this text. */
export function processesWith(text: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((id) => {
      try {
        return readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(text);
      } catch (error) {
        // The process has ended meanwhile.
        if (error instanceof Error && 'code' in error) return false;
        throw error;
      }
    });
}
