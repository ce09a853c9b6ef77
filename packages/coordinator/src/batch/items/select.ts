// Selects the files of a batch: those of the base commit that match, narrowed by the rest of the spec. A glob without
// matches or a missing path is a problem, reported before the run. An empty selection after filtering is not.

import { matchesGlob } from 'node:path';
import type { Git } from '../../git/git.ts';
import type { Item, SpecProblem, Select } from './spec.ts';
import { isPlainItem, readItemTexts, type Tree } from './tree.ts';

const PROBLEMS_MAX = 20;

/** Results of earlier look-ups outside the tree. */
export type Sources = {
  /** Items of a list or a command; undefined if the spec has neither. */
  readonly items: readonly ListedItem[] | undefined;
  /** Files that changed in the range; undefined without a range. */
  readonly changed: readonly string[] | undefined;
};

/** `where`: the origin of the item, for the user. */
export type ListedItem = Item & { readonly where: string };

export type Selected = {
  readonly items: readonly Item[];
  readonly problems: readonly SpecProblem[];
  /** Globs without a match: with several repositories, a match in one is enough. */
  readonly unmatched: readonly SpecProblem[];
};

export async function selectBatchItems(
  select: Select,
  { git, tree, sources }: { readonly git: Git; readonly tree: Tree; readonly sources: Sources },
  signal: AbortSignal,
): Promise<Selected> {
  const { files: globs, exclude, contains } = select;
  const unmatched = batchGlobProblems(select, tree).slice(0, PROBLEMS_MAX);
  const problems = missingBatchItems(select, sources, tree).slice(0, PROBLEMS_MAX);
  if (problems.length > 0) return { items: [], problems, unmatched };

  const changed = sources.changed && new Set(sources.changed);
  const isWanted = (path: string): boolean => {
    const file = tree.get(path);
    if (file === undefined || !isPlainItem(file) || changed?.has(path) === false) return false;
    if (globs !== undefined && !globs.some((glob) => matchesGlob(path, glob))) return false;
    return !exclude.some((glob) => matchesGlob(path, glob));
  };
  const all = sources.items ?? [...tree.keys()].map((path): Item => ({ files: [path] }));
  const wanted = narrowBatchItems(all, isWanted);
  if (contains === undefined) return { items: wanted, problems, unmatched };
  const paths = [...new Set(wanted.flatMap(({ files }) => files))];
  const holding = new Set<string>();
  for await (const [path, text] of readItemTexts(
    git,
    paths.flatMap((path) => tree.get(path) ?? []),
    signal,
  ))
    if (contains.test(text)) holding.add(path);
  return { items: narrowBatchItems(wanted, (path) => holding.has(path)), problems, unmatched };
}

function narrowBatchItems(items: readonly Item[], isWanted: (path: string) => boolean): readonly Item[] {
  return items.flatMap(({ files, id, vars }) => {
    const left = files.filter(isWanted);
    return left.length === 0 ? [] : [{ files: left, ...(id !== undefined && { id }), ...(vars && { vars }) }];
  });
}

function batchGlobProblems({ files = [] }: Select, tree: Tree): readonly SpecProblem[] {
  const paths = [...tree.values()].filter(isPlainItem).map(({ path }) => path);
  return files.flatMap((glob, at) =>
    paths.some((path) => matchesGlob(path, glob))
      ? []
      : [
          {
            key: `select.files.${at}`,
            message: `'${glob}' matches no file of the repository`,
            near: suggestBatchGlob(glob, paths),
          },
        ],
  );
}

/** Suggests the glob with an existing first folder. */
function suggestBatchGlob(glob: string, paths: readonly string[]): NonNullable<SpecProblem['near']> {
  const [, ...rest] = glob.split('/');
  const tops = new Set(paths.map((path) => path.split('/', 1)[0] ?? ''));
  return { word: glob, known: [...tops].map((top) => [top, ...rest].join('/')) };
}

function missingBatchItems({ command }: Select, { items = [] }: Sources, tree: Tree): readonly SpecProblem[] {
  const key = command === undefined ? 'select.files' : 'select.command';
  return items.flatMap(({ files, where }) =>
    files.flatMap((path) =>
      tree.has(path)
        ? []
        : [
            {
              key,
              message: `${where}: there is no file '${path}' in the repository`,
              near: { word: path, known: [...tree.keys()] },
            },
          ],
    ),
  );
}

/** Returns the problem that a glob's text alone shows. */
export function batchGlobProblem(glob: string): string | undefined {
  if (glob.startsWith('/')) return `'${glob}' begins with /; globs are relative to the top of the repository`;
  if (glob.split('/').includes('..')) return `'${glob}' leads out of the repository`;
  if (glob.startsWith('!')) return `'${glob}' begins with !; name what to leave out under exclude`;
  if (glob.endsWith('/')) return `'${glob}' is a folder; its files are '${glob}**'`;
  for (const [open, close] of ['[]', '{}'] as const)
    if (countCharInGlob(glob, open ?? '') !== countCharInGlob(glob, close ?? ''))
      return `'${glob}' has an ${open} without its ${close}`;
  return undefined;
}

function countCharInGlob(text: string, char: string): number {
  return text.split(char).length - 1;
}
