// Drover's own git: it runs nothing that a user, a repository or a worker has configured.
//
// It reads only the repository's own config, with everything switched off that could start a program: hooks,
// fsmonitor, pagers, editors, prompts, signing, and transports other than local folders. Filters have arbitrary names:
// drover's stores define none, and callers that look at a user's repository must switch them off (`gitFiltersOff`).
// Drover never uses a git folder that a worker could write.

import { buffer, text } from 'node:stream/consumers';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { DroverError } from '@drover/core/errors';
import type { ProcessSpec } from '@drover/core/tools/process/launcher';
import { startProcess } from '@drover/core/tools/process/start';
import { sendSignalToProcess } from '@drover/core/tools/process/tree';

const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;
const STDERR_CHARS_MAX = 2_000;

export type GitPlace = {
  readonly gitDir: string;
  readonly workTree?: string;
  readonly indexFile?: string;
  /** Folder for new objects (default: the repository's own). */
  readonly objects?: string;
  /** Further folders in which git looks for objects. */
  readonly borrowed?: readonly string[];
  /** Further settings, by name. */
  readonly settings?: Readonly<Record<string, string>>;
  /** PATH and other variables that a process needs to run. */
  readonly env: Readonly<Record<string, string>>;
};

type GitOptions = {
  readonly input?: string | Buffer;
  /** Exit codes that are answers, not failures. 0 is always one. */
  readonly accept?: readonly number[];
  readonly env?: Readonly<Record<string, string>>;
  /** Decodes output as one character per byte: for paths, which may be valid in no encoding. */
  readonly encoding?: 'utf8' | 'latin1';
  readonly signal?: AbortSignal;
};

export type GitAnswer = {
  readonly code: number;
  readonly out: string;
  /** The stderr of git, also after success. */
  readonly complaint: string;
};

/** Runs git and returns its output. Throws DroverError if git fails. */
export type Git = (args: readonly string[], options?: GitOptions) => Promise<GitAnswer>;

const OFF = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.untrackedCache=false',
  'core.splitIndex=false',
  // The ctime shows a file that was written and had its mtime reset.
  'core.trustctime=true',
  'core.checkStat=default',
  'core.attributesFile=/dev/null',
  'core.safecrlf=false',
  'core.pager=cat',
  'core.editor=:',
  'core.askPass=',
  'credential.helper=',
  'core.sshCommand=false',
  'commit.gpgSign=false',
  'tag.gpgSign=false',
  'log.showSignature=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'protocol.allow=never',
  'protocol.ext.allow=never',
  'protocol.file.allow=always',
  'submodule.recurse=false',
  'status.submoduleSummary=false',
  'core.quotePath=false',
  'color.ui=never',
  'advice.detachedHead=false',
  'advice.addEmbeddedRepo=false',
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
  const surroundings = gitSurroundings(place);
  return (args, options = {}) => runGit(args, options, surroundings);
}

/** The process that `gitAt` would start, for callers that talk to it. */
export function gitProcess(place: GitPlace, args: readonly string[]): GitProcess {
  return gitProcessSpec(args, gitSurroundings(place));
}

function gitSurroundings(place: GitPlace): Surroundings {
  const { gitDir, workTree, indexFile, objects, borrowed = [] } = place;
  const env = {
    ...withoutGitVariables(place.env),
    ...QUIET,
    GIT_DIR: gitDir,
    ...(workTree !== undefined && { GIT_WORK_TREE: workTree }),
    ...(indexFile !== undefined && { GIT_INDEX_FILE: indexFile }),
    ...(objects !== undefined && { GIT_OBJECT_DIRECTORY: objects }),
    ...(borrowed.length > 0 && { GIT_ALTERNATE_OBJECT_DIRECTORIES: borrowed.map(quotedGitPath).join(':') }),
    ...gitConfigAsEnvironment(place.settings ?? {}),
  };
  return { env, cwd: workTree ?? gitDir };
}

/**
 * Runs git in an unknown folder: git finds the repository itself, and reads the user's own config, which names trusted
 * folders among others. Use it only for commands that start no other program.
 */
export function gitIn(cwd: string, env: Readonly<Record<string, string>>): Git {
  const { GIT_CONFIG_GLOBAL: global } = env;
  const own = {
    ...withoutGitVariables(env),
    ...(global !== undefined && { GIT_CONFIG_GLOBAL: global }),
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    LC_ALL: 'C',
  };
  return (args, options = {}) => runGit(args, options, { env: own, cwd });
}

/** Settings that disable these filters of a repository. */
export function gitFiltersOff(drivers: readonly string[]): Readonly<Record<string, string>> {
  const off = drivers.flatMap((driver) => [
    ...['clean', 'smudge', 'process'].map((kind) => [`filter.${driver}.${kind}`, '']),
    [`filter.${driver}.required`, 'false'],
  ]);
  return Object.fromEntries(off);
}

/** The format of object folder lists: separated by colons or newlines, unless the path is quoted. */
export function quotedGitPath(path: string): string {
  return /[:"\n\\#]/.test(path) ? JSON.stringify(path) : path;
}

// `-c` cannot express a name that contains an equals sign.
function gitConfigAsEnvironment(settings: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = Object.entries(settings);
  if (pairs.length === 0) return {};
  const named = pairs.flatMap(([name, value], n) => [
    [`GIT_CONFIG_KEY_${n}`, name],
    [`GIT_CONFIG_VALUE_${n}`, value],
  ]);
  return { GIT_CONFIG_COUNT: `${pairs.length}`, ...Object.fromEntries(named) };
}

function withoutGitVariables(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('GIT_')));
}

type Surroundings = { readonly env: Readonly<Record<string, string>>; readonly cwd: string };

type GitProcess = Omit<ProcessSpec, 'together'>;

function gitProcessSpec(args: readonly string[], { env, cwd }: Surroundings): GitProcess {
  return { file: 'git', args: ['--no-pager', ...OFF, ...args], cwd, env, detached: false };
}

async function runGit(
  args: readonly string[],
  { input, accept = [], encoding = 'utf8', signal, env: more }: GitOptions,
  { env, cwd }: Surroundings,
): Promise<GitAnswer> {
  const stopped = (): DroverError | undefined =>
    signal?.aborted === true ? new DroverError(turnFailureOfSignal(signal)) : undefined;
  const failed = (message: string, options?: ErrorOptions) =>
    new DroverError({ kind: 'git.failed', args, message }, options);
  const notDone = (cause: unknown) => failed(cause instanceof Error ? cause.message : String(cause), { cause });
  if (stopped() !== undefined) throw stopped();
  const spec = gitProcessSpec(args, { cwd, env: { ...env, ...more } });
  const child = await startProcess(spec, input).catch((cause: unknown) => {
    throw notDone(cause);
  });
  let isRunning = true;
  const kill = () => isRunning && sendSignalToProcess(child.pid, 'SIGKILL');
  const ended = child.ended
    .finally(() => (isRunning = false))
    .catch((cause: unknown) => {
      throw notDone(cause);
    });
  let bytes = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > OUTPUT_BYTES_MAX) kill();
  });
  signal?.addEventListener('abort', kill, { once: true });
  if (stopped() !== undefined) kill();
  try {
    const [{ exitCode: code, signal: by }, out, said] = await Promise.all([
      ended,
      buffer(child.stdout),
      text(child.stderr),
    ]);
    if (code === undefined) throw failed(`ended by ${by}`);
    const complaint = said.trim().slice(0, STDERR_CHARS_MAX);
    if (code === 0 || accept.includes(code)) return { code, out: out.toString(encoding), complaint };
    throw failed(complaint || `exit code ${code}`);
  } catch (error) {
    throw stopped() ?? error;
  } finally {
    signal?.removeEventListener('abort', kill);
  }
}
