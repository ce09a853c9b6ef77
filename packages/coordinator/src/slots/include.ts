// Ignored files that a workspace gets besides the commit, by `.drover/include`: local settings, installed
// dependencies.
//
//   # one path or glob a line, from the top of the repository
//   .env.example
//   config/*.local.json
//   node_modules link        a link to the user's own instead of a copy
//
// Guarantees
//   1. Only files that git ignores are included, so that a commit never takes them for the worker's work.
//   2. Every file lies inside the repository, by name and by its real path. See copied-folder.ts for links in a copied
//      folder.
//   3. The number of entries looked at is bounded, and so is the number of warnings about those left out.
//
// A copy is the worker's own. A link is not: writing through it writes in the user's folder. `.worktreeinclude`, which
// other tools read, names files to copy in the syntax of .gitignore.

import { cp, glob, lstat, mkdir, realpath, symlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { readOwnFile } from '@drover/core/files/own-file';
import { gitOfRepository, type Repository } from '../git/repository.ts';
import { isCopiedIntoSlot, surveySlotCopy } from './copied-folder.ts';
import { isErrorCode } from '../git/removal.ts';
import { isInsideStore } from '../store/store.ts';

const LINES_MAX = 1_000;
const MATCHES_MAX = 10_000;
const ENTRIES_MAX = 500_000;
const LEFT_OUT_MAX = 50;
const GLOB_SIGN = /[*?[\]{}()!+@]/;
const INCLUDE_FILE = join('.drover', 'include');
const WORKTREE_INCLUDE = '.worktreeinclude';

/** `isPath`: the pattern is a literal path, even if it contains wildcards. */
export type IncludeLine = { readonly pattern: string; readonly how: 'copy' | 'link'; readonly isPath?: true };

export type Included = { readonly path: string; readonly how: 'copy' | 'link' };

export type Inclusion = {
  readonly included: readonly Included[];
  /** Entries that are not included, with the reason. */
  readonly leftOut: readonly string[];
};

/** Throws UsageError for an invalid line. */
export async function readSlotInclude(top: string): Promise<readonly IncludeLine[]> {
  const found = await readOwnFile({ path: join(top, INCLUDE_FILE), within: top });
  if (found.kind === 'refused') throw new UsageError(`${INCLUDE_FILE} ${found.problem}; ${found.fix}`);
  const lines = found.kind === 'missing' ? [] : found.bytes.toString('utf8').split('\n');
  if (lines.length > LINES_MAX) throw new UsageError(`${INCLUDE_FILE} has more than ${LINES_MAX} lines: use globs`);
  return lines.flatMap((line, n) => {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) return [];
    const [, path = text, link] = /^(.*?)(\s+link)?$/.exec(text) ?? [];
    const pattern = path.replace(/^\/+/, '').replace(/\/+$/, '');
    if (
      pattern === '' ||
      pattern.startsWith('!') ||
      pattern.split('/').some((part) => part === '..' || part === '.git')
    ) {
      throw new UsageError(
        `${INCLUDE_FILE}:${n + 1}: ${text} is no path or glob inside the repository: change the line`,
      );
    }
    return [{ pattern, how: link === undefined ? 'copy' : 'link' } as const];
  });
}

/** The untracked files that `.worktreeinclude` matches. */
export async function readWorktreeInclude({ repository, env }: IncludeSource): Promise<readonly IncludeLine[]> {
  const { top } = repository;
  const found = await readOwnFile({ path: join(top, WORKTREE_INCLUDE), within: top });
  if (found.kind === 'refused') throw new UsageError(`${WORKTREE_INCLUDE} ${found.problem}; ${found.fix}`);
  if (found.kind === 'missing') return [];
  const list = ['ls-files', '-z', '--others', '--ignored', `--exclude-from=${join(top, WORKTREE_INCLUDE)}`];
  const { out } = await gitOfRepository(repository, env)([...list, '--directory']);
  const paths = out.split('\0').filter((path) => path !== '');
  if (paths.length > MATCHES_MAX)
    throw new UsageError(`${WORKTREE_INCLUDE} names more than ${MATCHES_MAX} paths: name a folder instead`);
  return paths.map((path) => ({ pattern: path.replace(/\/$/, ''), how: 'copy', isPath: true }));
}

/** Warnings about paths that are not copied, and about links through which a worker reaches the checkout. */
export function slotInclusionWarnings({ included, leftOut }: Inclusion): readonly string[] {
  const links = included.filter(({ how }) => how === 'link').map(({ path }) => path);
  return [
    ...leftOut.map((problem) => `not brought along by ${INCLUDE_FILE}: ${problem}`),
    ...links.map(
      (path) =>
        `${INCLUDE_FILE} links ${path} to your checkout: in a monorepo gates may test your code instead of the worker's, and what a worker writes or removes there is yours; without "link" it is copied`,
    ),
  ];
}

export type IncludeSource = {
  readonly repository: Repository;
  readonly env: Readonly<Record<string, string>>;
  /** Maximum number of entries that the globs of all lines may visit (default: 500,000). */
  readonly entriesMax?: number;
};

/** Finds the files that the lines name. Throws UsageError if globs visit too many entries. */
export async function findSlotIncludes(lines: readonly IncludeLine[], source: IncludeSource): Promise<Inclusion> {
  const { top } = source.repository;
  const leftOut: string[] = [];
  const found = await matchesOfIncludeLines(lines, source, leftOut);
  const isIgnored = await ignoredIncludes([...found.keys()], source);
  const included: Included[] = [];
  const total = { entries: 0, links: 0, bytes: 0 };
  for (const item of found.values()) {
    if (!isIgnored.has(item.path)) {
      leftOut.push(`${item.path} is not ignored by git`);
      continue;
    }
    const behind = item.how === 'link' ? [] : await surveySlotCopy(item.path, { top, total });
    if (behind === undefined) leftOut.push(`${item.path} is too large to be copied: put "link" behind it`);
    else {
      leftOut.push(...behind);
      included.push(item);
    }
  }
  return { included: withoutNestedIncludes(included), leftOut: shortenIncludeWarnings(leftOut) };
}

async function matchesOfIncludeLines(
  lines: readonly IncludeLine[],
  { repository: { top }, entriesMax = ENTRIES_MAX }: IncludeSource,
  leftOut: string[],
): Promise<ReadonlyMap<string, Included>> {
  const found = new Map<string, Included>();
  const looked = { entries: 0, max: entriesMax };
  for (const { pattern, how, isPath } of lines) {
    if (isPath !== true && (await doesIncludeLeadOut(top, pattern))) {
      leftOut.push(`${pattern} is behind a link that leads out of the repository`);
      continue;
    }
    for (const path of isPath ? [pattern] : await matchesOfIncludePattern(top, pattern, looked)) {
      const problem = await objectionToInclude(top, path);
      if (problem === undefined) found.set(path, { path, how });
      else leftOut.push(`${path} ${problem}`);
    }
  }
  return found;
}

/** Returns true if a glob begins with a link to an outside folder, which it would list. */
async function doesIncludeLeadOut(top: string, pattern: string): Promise<boolean> {
  const names = pattern.split('/');
  const signAt = names.findIndex((name) => GLOB_SIGN.test(name));
  if (signAt < 1) return false;
  try {
    return !isInsideStore(await realpath(join(top, ...names.slice(0, signAt))), await realpath(top));
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return false;
    throw error;
  }
}

function shortenIncludeWarnings(sentences: readonly string[]): readonly string[] {
  if (sentences.length <= LEFT_OUT_MAX) return sentences;
  return [...sentences.slice(0, LEFT_OUT_MAX), `${sentences.length - LEFT_OUT_MAX} more paths`];
}

/** Copies it into the tree. Files of the commit are never replaced. */
export async function placeIncludes(included: readonly Included[], top: string, tree: string): Promise<void> {
  for (const { path, how } of included) {
    const [from, to] = [join(top, path), join(tree, path)];
    const folder = dirname(to);
    try {
      await mkdir(folder, { recursive: true });
      // A commit may have a link where the user has a folder, and it could lead anywhere.
      if ((await realpath(folder)) !== folder) continue;
      if (how === 'link') await symlink(await realpath(from), to);
      else
        await cp(from, to, {
          recursive: true,
          verbatimSymlinks: true,
          force: false,
          filter: (path) => isCopiedIntoSlot(path, top),
        });
    } catch (error) {
      if (!isErrorCode(error, 'ENOENT', 'ENOTDIR', 'EEXIST')) throw error;
    }
  }
}

/** Lines for an ignore file: `node_modules/` does not ignore a link named node_modules. */
export function includeAsIgnored(included: readonly Included[]): string {
  return included.map(({ path }) => `/${path.replaceAll(/[\\*?[\]! #]/g, '\\$&')}\n`).join('');
}

type Looked = { entries: number; readonly max: number };

async function matchesOfIncludePattern(top: string, pattern: string, looked: Looked): Promise<readonly string[]> {
  const goesInto = pattern.includes('node_modules/');
  // The glob calls this for every entry that it visits.
  const exclude = (path: string) => {
    if (++looked.entries > looked.max) {
      throw new UsageError(
        `${INCLUDE_FILE}: ${pattern} looks at more than ${looked.max} entries: name a folder instead`,
      );
    }
    return /(^|\/)\.git$/.test(path) || (!goesInto && /(^|\/)node_modules\/./.test(path));
  };
  const found: string[] = [];
  for await (const path of glob(pattern, { cwd: top, exclude })) {
    if (found.length >= MATCHES_MAX) {
      throw new UsageError(`${INCLUDE_FILE}: ${pattern} names more than ${MATCHES_MAX} paths: name a folder instead`);
    }
    found.push(path);
  }
  return found.toSorted();
}

async function objectionToInclude(top: string, path: string): Promise<string | undefined> {
  const whole = resolve(top, path);
  if (!isInsideStore(whole, top) || whole === top) return 'is not inside the repository';
  const real = await realpath(top);
  if ((await realpath(dirname(whole))) !== resolve(real, dirname(path))) return 'is behind a link';
  const kind = await lstat(whole);
  if (kind.isSymbolicLink()) return 'is a link';
  return kind.isFile() || kind.isDirectory() ? undefined : 'is neither a file nor a folder';
}

async function ignoredIncludes(
  paths: readonly string[],
  { repository, env }: IncludeSource,
): Promise<ReadonlySet<string>> {
  if (paths.length === 0) return new Set();
  const git = gitOfRepository(repository, env);
  const { out } = await git(['check-ignore', '-z', '--stdin'], { input: paths.join('\0'), accept: [1] });
  return new Set(out.split('\0'));
}

function withoutNestedIncludes(included: readonly Included[]): readonly Included[] {
  const paths = new Set(included.map(({ path }) => path));
  const isNested = (path: string): boolean => {
    const folder = dirname(path);
    return folder !== '.' && (paths.has(folder) || isNested(folder));
  };
  return included.filter(({ path }) => !isNested(path));
}
