// The branch and the author of a run's result, decided before the run spends anything.

import { gitAt } from '@drover/coordinator/git/git';
import type { Identity, Repository } from '@drover/coordinator/git/repository';
import { UsageError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import type { RunSettings } from '@drover/protocol/run';

const SLUG_CHARS_MAX = 40;
const SUFFIX_CHARS = 6;
const ID_PREFIX_CHARS = 'run_'.length;

export type ResultOptions = {
  readonly goal: string;
  readonly branch: string | undefined; // --branch
  readonly author: Identity | undefined; // --author, or the config
  readonly deliver: RunSettings['deliver'];
};

/** Returns the result branch and the author; throws UsageError for a branch that cannot be created. */
export async function readResultSettings(
  { goal, branch, author, deliver }: ResultOptions,
  repository: Repository,
  env: Readonly<Record<string, string>>,
): Promise<Pick<RunSettings, 'resultBranch' | 'author'>> {
  if (branch !== undefined && deliver === 'patch')
    throw new UsageError(
      '--branch needs --deliver branch or merge; --deliver patch writes files and creates no branch',
    );
  if (branch !== undefined) await checkResultBranch(branch, { gitDir: repository.gitDir, env });
  return { resultBranch: branch ?? defaultResultBranch(goal), author: author ?? repository.identity };
}

/** Parses `Name <email>`; throws UsageError for anything else. */
export function parseAuthor(text: string): Identity {
  const [, name = '', email = ''] = /^([^<>\n]*[^<>\s])\s*<([^<>\s]+)>$/.exec(text.trim()) ?? [];
  if (name === '') throw new UsageError(`'${text}' is not an author; write it as 'Name <email>'`);
  return { name: name.trim(), email };
}

function defaultResultBranch(goal: string): string {
  const suffix = newId('run').slice(ID_PREFIX_CHARS, ID_PREFIX_CHARS + SUFFIX_CHARS);
  return `drover/${branchSlug(goal) || 'run'}-${suffix}`;
}

/** The first words of the goal, as a part of a branch name. A word is cut only if it is too long by itself. */
function branchSlug(goal: string): string {
  const plain = goal.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase();
  const slug = plain.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-+|-+$/g, '');
  if (slug.length <= SLUG_CHARS_MAX) return slug;
  const end = slug.lastIndexOf('-', SLUG_CHARS_MAX);
  return slug.slice(0, end === -1 ? SLUG_CHARS_MAX : end);
}

type BranchPlace = {
  readonly gitDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** A branch that holds this commit already is accepted. */
  readonly commit?: string;
};

/** Throws UsageError for a branch that cannot be created. */
export async function checkResultBranch(branch: string, { gitDir, env, commit }: BranchPlace): Promise<void> {
  const git = gitAt({ gitDir, env });
  const ref = `refs/heads/${branch}`;
  const isValid = !branch.startsWith('-') && (await git(['check-ref-format', ref], { accept: [1] })).code === 0;
  if (!isValid || branch === 'HEAD')
    throw new UsageError(`--branch: '${branch}' is not a valid name of a branch; choose another`);
  if (branch === 'drover')
    throw new UsageError(`--branch: 'drover' is reserved for branches of tasks, drover/…; choose another`);
  const { out } = await git(['for-each-ref', '--format=%(objectname) %(refname:lstrip=2)', 'refs/heads/']);
  const lines = out.split('\n').filter((line) => line !== '');
  if (commit !== undefined && lines.includes(`${commit} ${branch}`)) return;
  const taken = lines.map((line) => line.slice(line.indexOf(' ') + 1));
  if (taken.includes(branch))
    throw new UsageError(`--branch: there is a branch '${branch}' already; choose another name`);
  const rival = taken.find((name) => name.startsWith(`${branch}/`) || branch.startsWith(`${name}/`));
  if (rival !== undefined)
    throw new UsageError(`--branch: git cannot have '${branch}' beside the branch '${rival}'; choose another name`);
}
