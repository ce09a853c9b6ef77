// A program run to its end from here, by a small process that waits for it: for what tests do with git.
//
// Starting a process costs by the memory of whoever starts it, and a process that has run many test files has
// hundreds of megabytes. So a shell is started while there is little, once, and starts the programs. What to
// run, what it reads and what it printed are files; a byte in either of two named pipes says that they are there.
// The shell ends, and its folder goes, when its process does, however that ends.

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

/** What it printed. Throws where it fails, with what it said. */
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

/** Starts it, if it is not there. */
export function shell(): Shell {
  return (shared[SHARED] ??= open());
}

type Shell = { readonly folder: string; readonly ask: number; readonly answer: number };

// One for all test files that run in this process, each of which may have its own copy of this module.
const SHARED = Symbol.for('drover.test.shell');
const shared = globalThis as { [SHARED]?: Shell };

function open(): Shell {
  const folder = mkdtempSync(join(tmpdir(), 'drover-shell-'));
  const [ask, answer] = [join(folder, 'ask'), join(folder, 'answer')];
  const made = spawnSync('mkfifo', [ask, answer]);
  if (made.status !== 0) throw new Error(`no pipes in ${folder}: ${made.stderr.toString()}`);
  const child = spawn('bash', ['-c', SHELL, 'bash', folder], { stdio: 'ignore' });
  child.unref();
  // Each waits for the other end.
  return { folder, ask: openSync(ask, 'w'), answer: openSync(answer, 'r') };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
