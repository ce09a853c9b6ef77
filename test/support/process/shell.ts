// A real bash that tests type into: an empty home, and no settings of this machine.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../workspace.ts';

/** A shell in drover's root folder, with HOME in `folder`; it ends with the test. */
export async function openShell(
  given: { readonly folder?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Shell> {
  const folder = given.folder ?? (await temporaryFolder());
  await mkdir(join(folder, 'home'), { recursive: true });
  const shell = new Shell(folder, given.env ?? {});
  onTestFinished(() => shell.close());
  return shell;
}

class Shell {
  readonly #bash: ChildProcessByStdio<Writable, Readable, null>;
  readonly #folder: string;
  readonly #closed: Promise<unknown>;
  #output = '';
  #blocks = 0;

  constructor(folder: string, env: Readonly<Record<string, string>>) {
    this.#folder = folder;
    const home = join(folder, 'home');
    // Processes that a block leaves behind end with their group.
    this.#bash = spawn('bash', ['--noprofile', '--norc'], {
      env: { PATH: process.env['PATH'], HOME: home, TMPDIR: folder, LC_ALL: 'C.UTF-8', ...compileCache(), ...env },
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
      cwd: resolve('.'),
    });
    this.#closed = once(this.#bash, 'close');
    this.#bash.stdout.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    // As in an interactive shell.
    this.#bash.stdin.write('exec 2>&1; shopt -s expand_aliases\n');
  }

  /** Both output streams of a block, and its exit status unless that is 0. */
  async run(code: string): Promise<string> {
    const n = ++this.#blocks;
    const file = join(this.#folder, `block-${n}.sh`);
    await writeFile(file, code);
    this.#bash.stdin.write(`. '${file}' < /dev/null; printf '<block ${n}: %d>\\n' $?\n`);
    const [text, status = ''] = await this.#until(new RegExp(`<block ${n}: (\\d+)>\\n`));
    return status === '0' ? text : `${text}(exit status ${status})`;
  }

  /** Writes a file into the shell's folder. */
  async save(name: string, text: string): Promise<void> {
    const source = join(this.#folder, 'saved');
    await writeFile(source, text);
    await this.run(`cp '${source}' '${name}'`);
  }

  async #until(end: RegExp): Promise<readonly [string, string | undefined]> {
    for (;;) {
      const match = end.exec(this.#output);
      if (match !== null) {
        const text = this.#output.slice(0, match.index);
        this.#output = this.#output.slice(match.index + match[0].length);
        return [text, match[1]];
      }
      if (this.#bash.exitCode !== null || this.#bash.signalCode !== null)
        throw new Error(`the shell has ended: ${this.#output}`);
      await Promise.race([once(this.#bash.stdout, 'data'), this.#closed]);
    }
  }

  async close(): Promise<void> {
    if (this.#bash.pid !== undefined) process.kill(-this.#bash.pid, 'SIGKILL');
    await this.#closed;
  }
}

function compileCache(): { readonly NODE_COMPILE_CACHE?: string } {
  const folder = process.env['NODE_COMPILE_CACHE'];
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}
