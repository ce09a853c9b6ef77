// The work of many tasks as patches, a hundred for each git process.
//
// A patch has one character per byte, because its content need not be valid text.

import type { Git } from '../git/git.ts';

const COMMITS_AT_ONCE = 100;
const WHOLE = ['--binary', '--full-index', '--no-ext-diff', '--no-textconv', '--no-renames'];

/** The change of each commit, in the given order; empty if it changes nothing. */
export async function* readBatchPatches(
  git: Git,
  commits: readonly string[],
): AsyncGenerator<{ readonly commit: string; readonly patch: string }> {
  for (let from = 0; from < commits.length; from += COMMITS_AT_ONCE) {
    const chunk = commits.slice(from, from + COMMITS_AT_ONCE);
    const input = chunk.map((commit) => `${commit}\n`).join('');
    const { out } = await git(['diff-tree', '--stdin', '-p', '-r', ...WHOLE], { input, encoding: 'latin1' });
    const found = new Map(splitBatchPatchesByCommit(out, new Set(chunk)));
    for (const commit of chunk) yield { commit, patch: found.get(commit) ?? '' };
  }
}

/** The patch between two commits. */
export async function batchPatchBetween(git: Git, base: string, merged: string): Promise<string> {
  const { out } = await git(['diff-tree', '-p', '-r', ...WHOLE, base, merged], { encoding: 'latin1' });
  return out;
}

/** The commit's id stands alone on a line before each patch; no line of a patch has that form. */
function* splitBatchPatchesByCommit(out: string, commits: ReadonlySet<string>): Generator<[string, string]> {
  let commit = '';
  let from = 0;
  for (let at = 0; at < out.length;) {
    const end = out.indexOf('\n', at);
    const line = out.slice(at, end < 0 ? out.length : end);
    const next = end < 0 ? out.length : end + 1;
    if (commits.has(line)) {
      if (commit !== '') yield [commit, out.slice(from, at)];
      commit = line;
      from = next;
    }
    at = next;
  }
  if (commit !== '') yield [commit, out.slice(from)];
}
