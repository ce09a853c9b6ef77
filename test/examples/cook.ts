// Runs recipes of the cookbook in a real bash: one shell for all blocks of a recipe, an empty home, and no settings of
// this machine.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { describe, onTestFinished } from 'vitest';
import { withoutNotice } from '../cli/fake-io.ts';
import { findProgram } from '../support/process/programs.ts';
import { temporaryFolder } from '../support/workspace.ts';
import { type Cookbook, mask, type PageStep, type Recipe, type Step } from './cookbook.ts';

const TEST_MS_MAX = 120_000; // a recipe starts a dozen processes, and the machine may be busy
const MISSING = ['bash', 'curl', 'jq'].filter((name) => findProgram([name]) === undefined);

/** Tests that run recipes; left out, with a line on stderr, where a program that recipes use is missing. */
export function inTerminal(title: string, tests: () => void): void {
  if (MISSING.length > 0)
    process.stderr.write(`\n*** LEFT OUT, for want of ${MISSING.join(', ')}: ${title}. Put it on the PATH.\n\n`);
  describe.runIf(MISSING.length === 0)(title, { timeout: TEST_MS_MAX }, tests);
}

/** Takes the steps on a page that the shell has printed the address of, and returns what the page says. */
export type Browse = (steps: readonly PageStep[], printed: string) => Promise<string>;

/** The outputs that the page shows, and those of the shell, masked alike. */
export type Cooked = { readonly shown: readonly string[]; readonly printed: readonly string[] };

export async function cook(cookbook: Cookbook, recipe: Recipe, browse: Browse = noBrowser): Promise<Cooked> {
  const terminal = await openTerminal();
  const shown: string[] = [];
  const printed: string[] = [];
  let last = '';
  for (const step of [...cookbook.setup, ...recipe.steps]) {
    if (step.type === 'save') {
      await terminal.save(step.file, step.code);
      continue;
    }
    last = step.type === 'run' ? await terminal.run(step.code) : await browse(step.steps, last);
    shown.push(labelled(step, step.output));
    printed.push(labelled(step, last));
    // Later blocks build on this one, and might wait for ever.
    if (shown.at(-1) !== printed.at(-1)) break;
  }
  return { shown: shown.slice(0, printed.length), printed };
}

async function noBrowser(): Promise<string> {
  throw new Error('this recipe needs a browser');
}

function labelled(step: Exclude<Step, { readonly type: 'save' }>, output: string): string {
  const label = step.type === 'run' ? step.code : step.steps.map((each) => each.label).join(', ');
  return `${label.trimEnd()}\n\n${mask(withoutNotice(output)).trimEnd()}`;
}

class Terminal {
  readonly #bash: ChildProcessByStdio<Writable, Readable, null>;
  readonly #folder: string;
  readonly #closed: Promise<unknown>;
  #output = '';
  #blocks = 0;

  constructor(folder: string) {
    this.#folder = folder;
    const home = join(folder, 'home');
    // Processes that a recipe leaves behind end with its group.
    this.#bash = spawn('bash', ['--noprofile', '--norc'], {
      env: { PATH: process.env['PATH'], HOME: home, TMPDIR: folder, LC_ALL: 'C.UTF-8', ...compileCache() },
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
      cwd: resolve('.'),
    });
    this.#closed = once(this.#bash, 'close');
    this.#bash.stdout.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    // As in a shell that a person types in.
    this.#bash.stdin.write('exec 2>&1; shopt -s expand_aliases\n');
  }

  /** All that a block prints on either stream, and its exit status unless that is 0. */
  async run(code: string): Promise<string> {
    const n = ++this.#blocks;
    const file = join(this.#folder, `block-${n}.sh`);
    await writeFile(file, code);
    this.#bash.stdin.write(`. '${file}' < /dev/null; printf '<block ${n}: %d>\\n' $?\n`);
    const [text, status = ''] = await this.#until(new RegExp(`<block ${n}: (\\d+)>\\n`));
    return status === '0' ? text : `${text}(exit status ${status})`;
  }

  /** Writes a file into the folder that the shell is in. */
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
      if (this.#bash.exitCode !== null) throw new Error(`the shell has ended: ${this.#output}`);
      await Promise.race([once(this.#bash.stdout, 'data'), this.#closed]);
    }
  }

  async close(): Promise<void> {
    if (this.#bash.pid !== undefined) process.kill(-this.#bash.pid, 'SIGKILL');
    await this.#closed;
  }
}

async function openTerminal(): Promise<Terminal> {
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'home'));
  const terminal = new Terminal(folder);
  onTestFinished(() => terminal.close());
  return terminal;
}

function compileCache(): { readonly NODE_COMPILE_CACHE?: string } {
  const folder = process.env['NODE_COMPILE_CACHE'];
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}
