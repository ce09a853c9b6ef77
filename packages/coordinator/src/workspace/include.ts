// What a workspace gets besides the commit: ignored files that `.drover/include` names, such as local
// settings and installed dependencies.
//
//   # one path or glob a line, from the top of the repository
//   .env.example
//   config/*.local.json
//   node_modules link        a link to the user's own instead of a copy
//
// Only what git ignores is brought along, so that it isn't taken for the worker's work, and only what is
// inside the repository by name and in fact: no way leads out through a link. A copy is the worker's own.
// A link is not: what is written through it is written in the user's folder.

import { cp, glob, lstat, mkdir, readlink, realpath, symlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { UsageError } from '@drover/core/failure';
import { readOwnFile } from '@drover/core/files/own-file';
import { gitOf, type Repository } from '../repository.ts';
import { isCode } from './removal.ts';
import { isInside } from './store.ts';

const LINES_MAX = 1_000;
const MATCHES_MAX = 10_000;
const COPIED_FILES_MAX = 20_000;
const COPIED_BYTES_MAX = 256 * 1024 * 1024;
const INCLUDE_FILE = join('.drover', 'include');

export type IncludeLine = { readonly pattern: string; readonly how: 'copy' | 'link' };

export type Included = { readonly path: string; readonly how: 'copy' | 'link' };

export type Inclusion = {
  readonly included: readonly Included[];
  /** What was named and isn't brought along, with the reason. */
  readonly leftOut: readonly string[];
};

/** Throws UsageError for a line that can't be meant. */
export async function readInclude(top: string): Promise<readonly IncludeLine[]> {
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

/** Finds what the lines name. */
export async function findIncluded(
  lines: readonly IncludeLine[],
  repository: Repository,
  env: Readonly<Record<string, string>>,
): Promise<Inclusion> {
  const leftOut: string[] = [];
  const found = new Map<string, Included>();
  for (const { pattern, how } of lines) {
    for (const path of await matches(repository.top, pattern)) {
      const problem = await objection(repository.top, path);
      if (problem === undefined) found.set(path, { path, how });
      else leftOut.push(`${path} ${problem}`);
    }
  }
  const isIgnored = await ignored([...found.keys()], repository, env);
  const included: Included[] = [];
  const budget: Budget = { files: 0, bytes: 0 };
  for (const item of found.values()) {
    if (!isIgnored.has(item.path)) leftOut.push(`${item.path} is not ignored by git`);
    else if (item.how === 'copy' && !(await fits(join(repository.top, item.path), budget))) {
      leftOut.push(`${item.path} is too large to be copied: put "link" behind it`);
    } else included.push(item);
  }
  return { included: withoutNested(included), leftOut };
}

/** Brings it into the tree. What the commit has in its place stays as the commit has it. */
export async function place(included: readonly Included[], top: string, tree: string): Promise<void> {
  for (const { path, how } of included) {
    const [from, to] = [join(top, path), join(tree, path)];
    const folder = dirname(to);
    try {
      await mkdir(folder, { recursive: true });
      // A commit may have a link where the user has a folder, and it could lead anywhere.
      if ((await realpath(folder)) !== folder) continue;
      if (how === 'link') await symlink(await realpath(from), to);
      else await cp(from, to, { recursive: true, verbatimSymlinks: true, force: false, filter: isHarmless(from) });
    } catch (error) {
      if (!isCode(error, 'ENOENT', 'ENOTDIR', 'EEXIST')) throw error;
    }
  }
}

/** Lines for a file of ignored paths: a link named node_modules is not what `node_modules/` ignores. */
export function asIgnored(included: readonly Included[]): string {
  return included.map(({ path }) => `/${path.replaceAll(/[\\*?[\]! #]/g, '\\$&')}\n`).join('');
}

async function matches(top: string, pattern: string): Promise<readonly string[]> {
  const goesInto = pattern.includes('node_modules/');
  const exclude = (path: string) => /(^|\/)\.git$/.test(path) || (!goesInto && /(^|\/)node_modules\/./.test(path));
  const found: string[] = [];
  for await (const path of glob(pattern, { cwd: top, exclude })) {
    if (found.length >= MATCHES_MAX) {
      throw new UsageError(`${INCLUDE_FILE}: ${pattern} names more than ${MATCHES_MAX} paths: name a folder instead`);
    }
    found.push(path);
  }
  return found.toSorted();
}

async function objection(top: string, path: string): Promise<string | undefined> {
  const whole = resolve(top, path);
  if (!isInside(whole, top) || whole === top) return 'is not inside the repository';
  const real = await realpath(top);
  if ((await realpath(dirname(whole))) !== resolve(real, dirname(path))) return 'is behind a link';
  const kind = await lstat(whole);
  if (kind.isSymbolicLink()) return 'is a link';
  return kind.isFile() || kind.isDirectory() ? undefined : 'is neither a file nor a folder';
}

async function ignored(
  paths: readonly string[],
  repository: Repository,
  env: Readonly<Record<string, string>>,
): Promise<ReadonlySet<string>> {
  if (paths.length === 0) return new Set();
  const git = gitOf(repository, env);
  const { out } = await git(['check-ignore', '-z', '--stdin'], { input: paths.join('\0'), accept: [1] });
  return new Set(out.split('\0'));
}

type Budget = { files: number; bytes: number };

async function fits(path: string, budget: Budget): Promise<boolean> {
  const wanted = { ...budget };
  const waiting = [path];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const found = await lstat(at);
    if (found.isDirectory()) for await (const name of glob('{*,.*}', { cwd: at })) waiting.push(join(at, name));
    else wanted.bytes += found.size;
    wanted.files += 1;
    if (wanted.files > COPIED_FILES_MAX || wanted.bytes > COPIED_BYTES_MAX) return false;
  }
  Object.assign(budget, wanted);
  return true;
}

function withoutNested(included: readonly Included[]): readonly Included[] {
  const paths = new Set(included.map(({ path }) => path));
  const isNested = (path: string): boolean => {
    const folder = dirname(path);
    return folder !== '.' && (paths.has(folder) || isNested(folder));
  };
  return included.filter(({ path }) => !isNested(path));
}

// Of what a copied folder holds: no pipes, and no links that lead out of it.
function isHarmless(top: string): (path: string) => Promise<boolean> {
  return async (path) => {
    const kind = await lstat(path);
    if (!kind.isSymbolicLink()) return kind.isFile() || kind.isDirectory();
    const target = await readlink(path);
    return !target.startsWith('/') && isInside(resolve(dirname(path), target), top);
  };
}
