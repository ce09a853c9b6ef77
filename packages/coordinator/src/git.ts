// Drover's own git: nothing that a user, a repository or a worker has configured is run by it.
//
// No config but the repository's own is read, and of that what could start a program is switched off:
// hooks, fsmonitor, filters of other names than we know are simply not defined, pagers, editors, prompts,
// signing. The git folders it works with are drover's or the user's, never one that a worker could write.
// Objects that a run makes go to the run's own store, and the user's are borrowed by it.

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { DroverError } from '@drover/core/failure';

const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;
const STDERR_CHARS_MAX = 2_000;

export type GitPlace = {
  readonly gitDir: string;
  readonly workTree?: string;
  readonly indexFile?: string;
  /** Where new objects go, instead of to the git folder's own. */
  readonly objects?: string;
  /** Where objects are looked for besides. */
  readonly borrowed?: readonly string[];
  /** PATH, and what else a process needs to run. */
  readonly env: Readonly<Record<string, string>>;
};

export type GitOptions = {
  readonly input?: string;
  /** Exit codes that are answers and not failures; 0 always is. */
  readonly accept?: readonly number[];
  readonly env?: Readonly<Record<string, string>>;
};

export type GitAnswer = { readonly code: number; readonly out: string };

/** Runs git and gives what it printed; throws DroverError where it fails. */
export type Git = (args: readonly string[], options?: GitOptions) => Promise<GitAnswer>;

const OFF = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.untrackedCache=false',
  'core.pager=cat',
  'core.editor=:',
  'core.askPass=',
  'credential.helper=',
  'core.sshCommand=false',
  'commit.gpgSign=false',
  'tag.gpgSign=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'protocol.ext.allow=never',
  'submodule.recurse=false',
  'core.quotePath=false',
  'advice.detachedHead=false',
  'diff.external=',
].flatMap((setting) => ['-c', setting]);

const QUIET: Readonly<Record<string, string>> = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_LAZY_FETCH: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  LC_ALL: 'C',
};

export function gitAt(place: GitPlace): Git {
  const { gitDir, workTree, indexFile, objects, borrowed = [] } = place;
  const env = {
    ...Object.fromEntries(Object.entries(place.env).filter(([name]) => !name.startsWith('GIT_'))),
    ...QUIET,
    GIT_DIR: gitDir,
    ...(workTree !== undefined && { GIT_WORK_TREE: workTree }),
    ...(indexFile !== undefined && { GIT_INDEX_FILE: indexFile }),
    ...(objects !== undefined && { GIT_OBJECT_DIRECTORY: objects }),
    ...(borrowed.length > 0 && { GIT_ALTERNATE_OBJECT_DIRECTORIES: borrowed.map(quotedPath).join(':') }),
  };
  return (args, options = {}) => runGit(args, options, { env, cwd: workTree ?? gitDir });
}

// A colon separates the folders of that list, unless the path is quoted.
function quotedPath(path: string): string {
  return /[:"\n]/.test(path) ? JSON.stringify(path) : path;
}

type Surroundings = { readonly env: Readonly<Record<string, string>>; readonly cwd: string };

async function runGit(args: readonly string[], options: GitOptions, { env, cwd }: Surroundings): Promise<GitAnswer> {
  const child = spawn('git', ['--no-pager', ...OFF, ...args], { cwd, env: { ...env, ...options.env }, stdio: 'pipe' });
  const failed = (message: string) => new DroverError({ kind: 'git.failed', args, message });
  const exited = new Promise<number>((resolve, reject) => {
    child.once('error', (error) => reject(failed(error.message)));
    child.once('close', (code, signal) => (code === null ? reject(failed(`ended by ${signal}`)) : resolve(code)));
  });
  let bytes = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > OUTPUT_BYTES_MAX) child.kill('SIGKILL');
  });
  // A git that ends before it has read its input is heard of by its exit code.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  const [code, out, complaint] = await Promise.all([exited, text(child.stdout), text(child.stderr)]);
  if (code === 0 || options.accept?.includes(code) === true) return { code, out };
  throw failed(complaint.trim().slice(0, STDERR_CHARS_MAX) || `exit code ${code}`);
}
