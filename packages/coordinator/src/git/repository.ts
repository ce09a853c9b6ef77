// The user's repository as a run finds it. Reading it changes nothing, not even the times in the index.
//
// A repository that drover can't work with is a UsageError with the fix, before any request is sent.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { DroverError, UsageError } from '@drover/core/errors';
import { gitFiltersOff, gitAt, gitIn, type Git } from './git.ts';

const GIT_OLDEST = [2, 38] as const; // the first version that merges without a checkout
const NOT_INCLUDED_MAX = 500;
const SUBMODULES_NAMED_MAX = 3;
const ALTERNATES_DEPTH_MAX = 5; // git's own message

/** The author if git has no user. */
export const FALLBACK = { name: 'drover', email: 'drover@localhost' };

export type Identity = { readonly name: string; readonly email: string };

export type ObjectFormat = 'sha1' | 'sha256';

export type Repository = {
  readonly top: string;
  readonly gitDir: string; // git folder of this checkout
  readonly commonDir: string; // equal to `gitDir`, except in a linked worktree
  readonly objects: string;
  readonly objectFormat: ObjectFormat;
  readonly head: string;
  readonly branch?: string; // absent if HEAD is detached
  /** Changed or untracked files, which HEAD lacks. */
  readonly notIncluded: readonly string[];
  readonly identity: Identity;
  /** The user's file of globally ignored paths, if one is configured. */
  readonly excludesFile?: string;
  /** Filters that the repository configures. They are not run. */
  readonly filters: readonly string[];
};

/** Throws UsageError if drover can't work with the repository. */
export async function openRepository(cwd: string, env: Readonly<Record<string, string>>): Promise<Repository> {
  const git = gitIn(cwd, env);
  await checkVersionOfGit(git, cwd);
  const [folders, config] = await Promise.all([findGitFolders(git, cwd), readRepositoryConfig(git, env)]);
  const opened = { ...folders, ...config };
  const [state] = await Promise.all([readRepositoryState(opened, env), refuseGitSubmodules(opened, env)]);
  return { ...opened, ...state };
}

/** Runs git in the user's checkout, without the repository's filters. */
export function gitOfRepository(
  { gitDir, top, filters, excludesFile }: Pick<Repository, 'gitDir' | 'top' | 'filters' | 'excludesFile'>,
  env: Readonly<Record<string, string>>,
): Git {
  const settings = {
    ...gitFiltersOff(filters),
    ...(excludesFile !== undefined && { 'core.excludesFile': excludesFile }),
  };
  return gitAt({ gitDir, workTree: top, settings, env });
}

/**
 * Returns the object folder and all that it borrows from, as absolute paths: git follows relative ones only one step.
 */
export async function gitObjectFolders(objects: string, depth: number = 0): Promise<readonly string[]> {
  const lines = await readFile(join(objects, 'info', 'alternates'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return '';
    throw error;
  });
  if (depth >= ALTERNATES_DEPTH_MAX) return [objects];
  const borrowed = lines.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const found = await Promise.all(
    borrowed.map((path) => gitObjectFolders(resolve(objects, unquotedGitPath(path)), depth + 1)),
  );
  return [...new Set([objects, ...found.flat()])];
}

function unquotedGitPath(path: string): string {
  return path.startsWith('"') ? path.slice(1, -1).replaceAll(/\\(["\\])/g, '$1') : path;
}

/** The version of git. Throws UsageError if git is missing or too old. */
export async function checkGitVersion(cwd: string, env: Readonly<Record<string, string>>): Promise<string> {
  return checkVersionOfGit(gitIn(cwd, env), cwd);
}

async function checkVersionOfGit(git: Git, cwd: string): Promise<string> {
  const { out } = await git(['version']).catch((error: unknown) => {
    const cause = error instanceof DroverError ? error.cause : undefined;
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT' && existsSync(cwd)) {
      throw new UsageError('git was not found, and drover works with git repositories: install git 2.38 or newer');
    }
    throw error;
  });
  const [major = 0, minor = 0] = (/\d+\.\d+/.exec(out)?.[0] ?? '').split('.').map(Number);
  const [majorOldest, minorOldest] = GIT_OLDEST;
  if (major > majorOldest || (major === majorOldest && minor >= minorOldest)) return out.trim();
  throw new UsageError(`this is ${out.trim()}, and drover needs ${GIT_OLDEST.join('.')} or newer: update git`);
}

type Folders = Pick<Repository, 'top' | 'gitDir' | 'commonDir' | 'objects' | 'objectFormat'>;

async function findGitFolders(git: Git, cwd: string): Promise<Folders> {
  const kind = ['rev-parse', '--is-bare-repository', '--is-inside-work-tree'];
  const about = ['--git-dir', '--git-common-dir', '--git-path', 'objects', '--show-object-format'];
  const { out } = await git([...kind, '--path-format=absolute', ...about]).catch((error: unknown) => {
    if (!(error instanceof DroverError)) throw error;
    throw new UsageError(whyNoRepository(error, cwd));
  });
  const [isBare, isInside, gitDir = '', commonDir = '', objects = '', objectFormat, ...rest] = out
    .trimEnd()
    .split('\n');
  if (isBare === 'true') {
    throw new UsageError(`${cwd} is a bare repository, which has no files to work on: clone it and go there`);
  }
  if (isInside !== 'true') {
    throw new UsageError(`${cwd} is inside a git folder, not in a checkout: go to the folder that holds it`);
  }
  const work = ['rev-parse', '--path-format=absolute', '--show-toplevel', '--show-superproject-working-tree'];
  const [top = '', superproject = '', ...more] = (await git(work)).out.replace(/\n$/, '').split('\n');
  if (superproject !== '') {
    throw new UsageError(`${top} is a submodule of ${superproject}, which drover can't work in: clone it by itself`);
  }
  if (rest.length + more.length > 0 || (objectFormat !== 'sha1' && objectFormat !== 'sha256')) {
    throw new UsageError(`drover doesn't understand where the repository of ${cwd} is kept: move it to a plain path`);
  }
  return { top, gitDir, commonDir, objects, objectFormat };
}

function whyNoRepository(error: DroverError, cwd: string): string {
  const { message } = error;
  if (message.includes('not a git repository')) {
    return `${cwd} is not in a git repository, and drover works on one: go to yours, or make one with git init and a first commit`;
  }
  return `drover can't use the repository of ${cwd}: ${message}`;
}

type Config = Pick<Repository, 'identity' | 'excludesFile' | 'filters'>;

// Also reads the user's own config, for name, email and ignored files.
async function readRepositoryConfig(git: Git, env: Readonly<Record<string, string>>): Promise<Config> {
  const wanted = '^(user\\.(name|email)|core\\.excludesfile|filter\\..*)$';
  const { out } = await git(['config', '--null', '--get-regexp', wanted], { accept: [1] });
  const values = new Map<string, string>();
  const filters = new Set<string>();
  for (const entry of out.split('\0')) {
    const end = entry.indexOf('\n');
    const name = end < 0 ? entry : entry.slice(0, end);
    if (end >= 0) values.set(name, entry.slice(end + 1));
    const driver = /^filter\.(.+)\.[^.]+$/s.exec(name)?.[1];
    if (driver !== undefined) filters.add(driver);
  }
  const [name, email, excludes] = ['user.name', 'user.email', 'core.excludesfile'].map((key) => values.get(key));
  const excludesFile = excludes?.replace(/^~(?=\/)/, env['HOME'] ?? '~');
  return {
    identity: name && email ? { name, email } : FALLBACK,
    filters: [...filters],
    ...(excludesFile !== undefined && isAbsolute(excludesFile) && { excludesFile }),
  };
}

type State = Pick<Repository, 'head' | 'branch' | 'notIncluded'>;

async function readRepositoryState(opened: Folders & Config, env: Readonly<Record<string, string>>): Promise<State> {
  const args = ['status', '--porcelain=v2', '--branch', '-z', '--no-renames', '--no-ahead-behind'];
  const { out } = await gitOfRepository(opened, env)([...args, '--untracked-files=normal', '--ignore-submodules=all']);
  const entries = out.split('\0').filter((entry) => entry !== '');
  const header = (name: string) =>
    entries.find((entry) => entry.startsWith(`# branch.${name} `))?.slice(`# branch.${name} `.length) ?? '';
  const head = header('oid');
  const branch = header('head');
  if (!/^[0-9a-f]+$/.test(head)) {
    throw new UsageError(
      `${branch} in ${opened.top} has no commit yet, and work has to start from one: git add what is there, then git commit; or check out a branch that has one`,
    );
  }
  return { head, notIncluded: notIncludedFromRepository(entries), ...(branch !== '(detached)' && { branch }) };
}

function notIncludedFromRepository(entries: readonly string[]): readonly string[] {
  const paths = entries.flatMap((entry) => changedPathInRepository(entry) ?? []);
  const more = paths.length - NOT_INCLUDED_MAX;
  return more > 0 ? [...paths.slice(0, NOT_INCLUDED_MAX), `… and ${more} more`] : paths;
}

/** The path that an entry of `status --porcelain=v2 -z --no-renames` is about. */
export function changedPathInRepository(entry: string): string | undefined {
  switch (entry[0]) {
    case '1':
      return entry.split(' ').slice(8).join(' ');
    case 'u':
      return entry.split(' ').slice(10).join(' ');
    case '?':
      return entry.slice(2);
    default:
      return undefined;
  }
}

async function refuseGitSubmodules(opened: Folders & Config, env: Readonly<Record<string, string>>): Promise<void> {
  const list = ['ls-tree', '-r', '-z', '--full-tree', '--format=%(objectmode) %(path)', 'HEAD'];
  // Another check reports a repository without a commit.
  const { out } = await gitOfRepository(opened, env)(list, { accept: [128] });
  if (!out.includes('160000 ')) return;
  const found = out.split('\0').flatMap((entry) => (entry.startsWith('160000 ') ? [entry.slice(7)] : []));
  if (found.length === 0) return;
  const named = found.slice(0, SUBMODULES_NAMED_MAX).join(', ');
  const more = found.length > SUBMODULES_NAMED_MAX ? ` and ${found.length - SUBMODULES_NAMED_MAX} more` : '';
  throw new UsageError(
    `${opened.top} contains submodules (${named}${more}), which drover can't copy: run it inside a clone of the one to work on`,
  );
}
