// Differences between two trees of a run, as git prints them, and the tree of a workspace that is at work.
//
// Guarantees
//   1. Neither the user's repository, nor the store, nor the workspace is written.
//   2. No program of the user, the repository or a worker runs: no external diff, no filter, no text conversion.
//
// Content need not be text in any encoding, so texts have one character per byte.

import { copyFile, mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { LineCount } from '@drover/protocol/run';
import { type Git, gitAt } from './git.ts';
import { isErrorCode, removeFolderTree } from './removal.ts';

export type Range = { readonly from: string; readonly to: string };

/** `patch` is for readers; `whole` is for `git apply` and contains binary files too. */
type DiffForm = 'patch' | 'whole' | 'stat' | 'names';

export type FileChange = {
  readonly path: string;
  readonly added?: number; // absent for a binary file
  readonly removed?: number;
};

const PLAIN = ['--no-ext-diff', '--no-textconv', '--no-color', '--ignore-submodules=none'];

export async function gitDiffText(git: Git, { from, to }: Range, how: DiffHow): Promise<string> {
  const { out } = await git(['diff-tree', '-r', ...PLAIN, ...gitDiffFlags(how), from, to], { encoding: 'latin1' });
  return out;
}

export type DiffHow = { readonly form: DiffForm; readonly columns?: number };

function gitDiffFlags({ form, columns }: DiffHow): readonly string[] {
  switch (form) {
    case 'patch':
      return ['-p', '-M'];
    case 'whole':
      return ['-p', '-M', '--binary', '--full-index'];
    case 'stat':
      return ['-M', columns === undefined ? '--stat' : `--stat=${columns}`];
    case 'names':
      return ['--name-only', '--no-renames'];
  }
}

/** The files that differ, in git's order, with their line counts. */
export async function gitChangedFiles(git: Git, { from, to }: Range): Promise<readonly FileChange[]> {
  const { out } = await git(['diff-tree', '-r', '-z', ...PLAIN, '--numstat', '--no-renames', from, to]);
  return out.split('\0').flatMap((entry) => gitChangedFile(entry) ?? []);
}

function gitChangedFile(entry: string): FileChange | undefined {
  const [, added = '', removed = '', path = ''] = /^(\d+|-)\t(\d+|-)\t(.*)$/s.exec(entry) ?? [];
  if (path === '') return undefined;
  return added === '-' ? { path } : { path, added: Number(added), removed: Number(removed) };
}

/** Lines that each commit adds and removes. One git process for all; missing commits are left out. */
export async function gitChangeCounts(git: Git, commits: readonly string[]): Promise<ReadonlyMap<string, LineCount>> {
  const counts = new Map<string, LineCount>();
  if (commits.length === 0) return counts;
  const args = ['diff-tree', '--stdin', '-r', '-z', ...PLAIN, '--numstat', '--no-renames'];
  const { out } = await git(args, { input: `${[...new Set(commits)].join('\n')}\n`, accept: [128] });
  let commit = '';
  for (const entry of out.split('\0').flatMap((each) => each.split(/(?<=^[0-9a-f]{40,64})\n/))) {
    const file = gitChangedFile(entry);
    if (/^[0-9a-f]{40,64}$/.test(entry)) {
      commit = entry;
      counts.set(commit, { added: 0, removed: 0 });
    } else if (file !== undefined) {
      const { added, removed } = counts.get(commit) ?? { added: 0, removed: 0 };
      counts.set(commit, { added: added + (file.added ?? 0), removed: removed + (file.removed ?? 0) });
    }
  }
  return counts;
}

export async function gitHasCommit(git: Git, commit: string): Promise<boolean> {
  return (await git(['cat-file', '-e', `${commit}^{commit}`], { accept: [1, 128] })).code === 0;
}

export type WorkspacePlace = {
  readonly store: string; // its git folder
  readonly workspace: string; // the working tree of a slot
  readonly base: string;
  readonly env: Readonly<Record<string, string>>;
};

/** Calls `read` with a tree object of a workspace's current state. Its objects are removed afterwards. */
export async function withGitTreeOfWorkspace<Result>(
  { store, workspace, base, env }: WorkspacePlace,
  read: (git: Git, tree: string) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-diff-'));
  try {
    const own = join(dirname(workspace), 'git');
    const [indexFile, objects] = [join(folder, 'index'), join(folder, 'objects')];
    await mkdir(objects);
    const settings = { 'core.excludesFile': join(own, 'exclude') };
    const borrowed = [join(store, 'objects')];
    const git = gitAt({ gitDir: store, workTree: workspace, indexFile, objects, borrowed, settings, env });
    // With drover's own index git needs to read only the files that changed.
    const isCopied = await copyFile(join(own, 'index'), indexFile).then(
      () => true,
      (error: unknown) => {
        if (isErrorCode(error, 'ENOENT')) return false;
        throw error;
      },
    );
    if (!isCopied) await git(['read-tree', base]);
    // A worker may be removing files, or may have created a repository inside.
    await git(['add', '--all', '--ignore-errors', '--', '.'], { accept: [1, 128] });
    const { out } = await git(['write-tree']);
    return await read(git, out.trim());
  } finally {
    await removeFolderTree(folder);
  }
}
