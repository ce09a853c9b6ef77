// One merge without a checkout: two commits become a tree, or a list of conflicts.
//
// The merged work becomes one commit on top of the other, so history is linear with one commit per task. The merge is
// deterministic: repeated, it gives the same commit id.

import { DroverError } from '@drover/core/errors';
import type { Git } from '../git/git.ts';

const PATHS_SHOWN_MAX = 20;
const NOTES_CHARS_MAX = 2_000;
const HUNKS_CHARS_MAX = 12_000;

const OBJECT_ID = /^[0-9a-f]{40,64}$/;

/** A state of the integration branch. */
export type Point = { readonly commit: string; readonly tree: string };

export type Sides = { readonly onto: string; readonly commit: string };

export type Conflict = {
  readonly tree: string; // with conflict markers in its files
  readonly paths: readonly string[];
  readonly notes: readonly string[]; // git's messages
};

/** Merges two commits into a tree or a list of conflicts. Writes only objects. */
export async function mergeTrees(git: Git, { onto, commit }: Sides): Promise<string | Conflict> {
  // Unrelated histories are merged too: then every path that both have conflicts.
  const args = ['merge-tree', '--write-tree', '-z', '--allow-unrelated-histories', onto, commit];
  const { code, out } = await git(args, { accept: [1] });
  const [tree = '', ...rest] = out.split('\0');
  // Git also exits with 1 if a commit does not exist, and then prints nothing.
  if (!OBJECT_ID.test(tree)) throw new DroverError({ kind: 'git.failed', args, message: 'there is no such commit' });
  return code === 0 ? tree : { tree, ...readMergeConflict(rest) };
}

// Output format: entries "<mode> <object> <stage>\t<path>", an empty entry, then records of number of paths, paths,
// type, message.
function readMergeConflict(fields: readonly string[]): Pick<Conflict, 'paths' | 'notes'> {
  const end = fields.indexOf('');
  const paths = new Set(fields.slice(0, end).map((entry) => entry.slice(entry.indexOf('\t') + 1)));
  const notes: string[] = [];
  for (let at = end + 1; at < fields.length;) {
    const count = Number(fields[at]);
    if (!Number.isInteger(count) || fields[at] === '') break;
    const [type = '', note = ''] = fields.slice(at + 1 + count, at + 3 + count);
    if (type.startsWith('CONFLICT')) notes.push(note.trim());
    at += 3 + count;
  }
  return { paths: [...paths], notes };
}

/** Describes the conflict again on resume; undefined if the two do not conflict. */
export async function mergeConflictMessage(git: Git, sides: Sides): Promise<string | undefined> {
  const merged = await mergeTrees(git, sides);
  return typeof merged === 'string' ? undefined : describeMergeConflict(git, merged, sides);
}

/** Describes a conflict for the model that tries again: the paths, and the files with both sides. */
export async function describeMergeConflict(git: Git, conflict: Conflict, sides: Sides): Promise<string> {
  const shown = conflict.paths.slice(0, PATHS_SHOWN_MAX);
  const more = conflict.paths.length - shown.length;
  const named = (text: string) => text.replaceAll(sides.onto, 'LANDED').replaceAll(sides.commit, 'THIS TASK');
  const notes = conflict.notes.length > 0 ? conflict.notes : conflict.paths;
  const hunks = await mergeConflictHunks(git, sides.onto, { tree: conflict.tree, paths: shown });
  return [
    'This task can not be merged: since it began, other work has landed that changes the same places.',
    boundConflictText(named(notes.map((note) => `- ${note}`).join('\n')), NOTES_CHARS_MAX),
    'The files with both sides in them, as a diff against what has landed (LANDED is what is there now, THIS TASK is what this task made):',
    boundConflictText(named(hunks), HUNKS_CHARS_MAX),
    ...(more > 0 ? [`${more} more files conflict.`] : []),
  ].join('\n\n');
}

async function mergeConflictHunks(
  git: Git,
  onto: string,
  { tree, paths }: Pick<Conflict, 'tree' | 'paths'>,
): Promise<string> {
  try {
    const options = ['-p', '--no-ext-diff', '--no-textconv', '--no-renames'];
    return (await git(['--literal-pathspecs', 'diff-tree', ...options, onto, tree, '--', ...paths])).out.trim();
  } catch (error) {
    // The description is optional: a diff that is too large must not end the train.
    if (error instanceof DroverError) return '(they are too large to show)';
    throw error;
  }
}

function boundConflictText(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax).toWellFormed()}\n[… cut …]`;
}
