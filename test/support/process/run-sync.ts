// Runs a program synchronously through a small shell process; tests use it for git.
//
// Starting a process costs time by the memory of its parent, and a process that has run many test files has hundreds
// of megabytes. So one shell is started early, and starts the programs. Command, input and output are files; a byte in
// one of two named pipes signals that they are ready. The shell and its folder end with their process.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SHELL = `cd "$1" && exec 3<ask 4>answer && while read -r -n 1 -u 3; do
  ( . ./program ) <in >out 2>err 3<&- 4>&-
  printf '%03d' $? >&4
done; rm -rf "$1"`;

export type Surroundings = {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string | Buffer;
};

/** The program's output. Throws with its stderr if it fails. */
export function runSync(file: string, args: readonly string[], { cwd, env, input }: Surroundings): Buffer {
  const { folder, ask, answer } = shell();
  const surroundings = Object.entries(env ?? process.env).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  const words = ['env', '-i', ...surroundings, file, ...args].map(quoted).join(' ');
  writeFileSync(join(folder, 'program'), `cd ${quoted(cwd)} && exec ${words}\n`);
  writeFileSync(join(folder, 'in'), input ?? '');
  writeSync(ask, '.');
  const code = Buffer.alloc(3);
  if (readSync(answer, code) !== code.length) throw new Error('the shell that starts programs was lost');
  const said = (name: string) => readFileSync(join(folder, name));
  if (code.toString() === '000') return said('out');
  throw new Error(
    `${file} ${args.join(' ')}: exit code ${Number(code.toString())}\n${said('err').toString()}${said('out').toString()}`,
  );
}

/** Starts the helper process unless it runs already. */
export function shell(): Shell {
  return (shared[SHARED] ??= open());
}

type Shell = { readonly folder: string; readonly ask: number; readonly answer: number };

// One helper for all test files of this process, each of which may have its own copy of this module.
const SHARED = Symbol.for('drover.test.shell');
const shared = globalThis as { [SHARED]?: Shell };

function open(): Shell {
  const folder = mkdtempSync(join(tmpdir(), 'drover-shell-'));
  const [ask, answer] = [join(folder, 'ask'), join(folder, 'answer')];
  const made = spawnSync('mkfifo', [ask, answer]);
  if (made.status !== 0) throw new Error(`no pipes in ${folder}: ${made.stderr.toString()}`);
  const child = spawn('bash', ['-c', SHELL, 'bash', folder], { stdio: 'ignore' });
  child.unref();
  // Each side waits for the other to open the pipe.
  return { folder, ask: openSync(ask, 'w'), answer: openSync(answer, 'r') };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
