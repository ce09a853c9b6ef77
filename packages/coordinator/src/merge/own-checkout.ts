// The user's own checkout, written on their request only: their branch, index and files move to what was merged.
//
// Here the user's own git config holds, which drover's git otherwise leaves out: line ends and filters such
// as LFS decide how a file lies in their checkout, and without them all of it would look changed afterwards.
// Hooks stay off all the same. They may be files of the tree itself, so that what was just merged would run.

import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { DroverError, ToolError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import { runChildProcess } from '@drover/core/tools/process/child';
import { gitAt } from '../git/git.ts';

const GIT_MS_MAX = 30 * 60_000;
const OUTPUT_BYTES_MAX = 1_000_000;
const PATHS_NAMED_MAX = 3;
const PROBLEM_CHARS_MAX = 1_000;

type UserRepository = {
  readonly top: string;
  readonly gitDir: string;
  readonly branch?: string; // the user's branch at the start of the run; absent if HEAD was detached
};

export type OwnCheckout = {
  readonly repository: UserRepository;
  readonly base: string;
  readonly env: Readonly<Record<string, string>>;
  /** An earlier result: a branch that it contains can be moved forward. */
  readonly store?: string; // the git folder that contains it
  readonly merged?: string;
};

/** Why the result can't be merged into the user's branch, as a sentence; undefined if it can. */
export async function mergeObstacle(checkout: OwnCheckout, signal: AbortSignal): Promise<string | undefined> {
  const { repository, base, env } = checkout;
  if (repository.branch === undefined) return 'HEAD is detached, so there is no branch to merge into: check one out';
  const git = gitAt({ gitDir: repository.gitDir, env });
  const { out } = await git(['symbolic-ref', '--quiet', '--short', 'HEAD'], { accept: [1] });
  const branch = out.trim();
  if (branch !== repository.branch) {
    return `you are no longer on ${repository.branch}, but ${branch === '' ? 'on no branch' : `on ${branch}`}`;
  }
  const head = (await git(['rev-parse', '--verify', 'HEAD'])).out.trim();
  if (head !== base && !(await isPartOfMergeResult(checkout, head)))
    return `${branch} has moved since the run began (${base.slice(0, 12)} to ${head.slice(0, 12)})`;

  const status = [
    'status',
    '--porcelain=v1',
    '-z',
    '--no-renames',
    '--untracked-files=no',
    '--ignore-submodules=dirty',
  ];
  const { exitCode, output } = await gitOfOwnCheckout(checkout, status, signal);
  if (exitCode !== 0) return `git status fails in ${repository.top}: ${output.slice(0, PROBLEM_CHARS_MAX)}`;
  const changed = output.split('\0').flatMap((entry) => (entry === '' ? [] : [entry.slice(3)]));
  if (changed.length === 0) return undefined;
  const more = changed.length - PATHS_NAMED_MAX;
  const named = changed.slice(0, PATHS_NAMED_MAX).join(', ');
  return `your checkout has changes that are not committed or stashed: ${named}${more > 0 ? ` and ${more} more` : ''}`;
}

/** True if the result's history contains the commit, as after an earlier delivery. */
async function isPartOfMergeResult({ store, merged, env }: OwnCheckout, commit: string): Promise<boolean> {
  if (store === undefined || merged === undefined) return false;
  const accept = [1, 128];
  return (await gitAt({ gitDir: store, env })(['merge-base', '--is-ancestor', commit, merged], { accept })).code === 0;
}

/** Merges. Returns the obstacle in git's words; undefined on success. */
export async function fastForwardOwnCheckout(checkout: OwnCheckout, to: string): Promise<string | undefined> {
  const only = ['--ff-only', '--commit', '--no-squash', '--no-autostash', '--no-verify-signatures', '--no-stat'];
  // Runs to its end even on a stop, because an interrupted checkout would be neither the old nor the new state.
  const { exitCode, output } = await gitOfOwnCheckout(
    checkout,
    ['merge', '--quiet', ...only, to],
    new AbortController().signal,
  );
  return exitCode === 0 ? undefined : output.trim().slice(0, PROBLEM_CHARS_MAX) || `exit code ${exitCode}`;
}

async function gitOfOwnCheckout(
  { repository, env }: OwnCheckout,
  args: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly exitCode: number | undefined; readonly output: string }> {
  const off = ['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'gc.auto=0', 'maintenance.auto=false'];
  const options = ['--no-pager', ...off.flatMap((setting) => ['-c', setting])];
  const kept: Buffer[] = [];
  let bytes = 0;
  const keep = (chunk: Buffer): undefined => {
    // Copied, because the chunk is reused.
    if (bytes < OUTPUT_BYTES_MAX) kept.push(Buffer.from(chunk));
    bytes += chunk.length;
  };
  const child = {
    file: 'git',
    args: [...options, ...args],
    cwd: repository.top,
    env: {
      ...Object.fromEntries(
        Object.entries(env).filter(([name]) => !name.startsWith('GIT_') || name === 'GIT_CONFIG_GLOBAL'),
      ),
      GIT_TERMINAL_PROMPT: '0',
      GIT_OPTIONAL_LOCKS: '0',
      GIT_MERGE_AUTOEDIT: 'no',
      LC_ALL: 'C.UTF-8',
    },
    callId: newId('call'),
    timeoutMs: GIT_MS_MAX,
  };
  try {
    const { exitCode } = await runChildProcess({ ...child, onStdout: keep }, signal);
    if (signal.aborted) throw new DroverError(turnFailureOfSignal(signal));
    return { exitCode, output: Buffer.concat(kept).toString() };
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    if (signal.aborted) throw new DroverError(turnFailureOfSignal(signal), { cause: error });
    throw new DroverError({ kind: 'git.failed', args, message: error.message }, { cause: error });
  }
}
