// Groups selected files; each group becomes a task. Pure.
//
// The same files give the same groups in any order. Files that were selected as one item stay together.

import { posix } from 'node:path';
import { type Owners, codeownersOfPath } from './codeowners.ts';
import type { Grouping, Item } from './spec.ts';
import type { Tree } from './tree.ts';

const MANIFESTS = ['package.json', 'pyproject.toml', 'Cargo.toml', 'go.mod', 'pom.xml', 'build.gradle'];

export type Group = Item & {
  /** The value that items of a group share: file, folder, package folder or owners. */
  readonly name: string;
  /** Part number, from 1, if a group had too many files for one task. */
  readonly part?: number;
};

export type Around = { readonly tree: Tree; readonly owners: Owners };

export function groupBatchItems(items: readonly Item[], { by, max }: Grouping, around: Around): readonly Group[] {
  const isAlone = ({ id }: Item): boolean => by === 'file' || id !== undefined;
  const together = Map.groupBy(
    items.filter((item) => !isAlone(item)).flatMap(({ files }) => files),
    (path) => nameOfBatchGroup(path, by, around),
  );
  const single = items
    .filter(isAlone)
    .map((item): Group => ({ ...item, files: item.files.toSorted(), name: item.files[0] ?? '' }));
  const several = [...together].flatMap(([name, files]) => splitBatchGroup(name, [...new Set(files)].toSorted(), max));
  return [...single, ...several].toSorted((a, b) =>
    a.name < b.name ? -1 : a.name > b.name ? 1 : (a.part ?? 0) - (b.part ?? 0),
  );
}

function splitBatchGroup(name: string, files: readonly string[], max: number): readonly Group[] {
  if (files.length <= max) return [{ name, files }];
  // Groups are of about equal size, without a small rest.
  const count = Math.ceil(files.length / max);
  return Array.from({ length: count }, (_, at) => ({
    name,
    part: at + 1,
    files: files.slice(Math.floor((at * files.length) / count), Math.floor(((at + 1) * files.length) / count)),
  }));
}

function nameOfBatchGroup(path: string, by: Grouping['by'], { tree, owners }: Around): string {
  switch (by) {
    case 'file':
      return path;
    case 'directory':
      return posix.dirname(path);
    case 'package':
      return packageFolderOfItem(path, tree);
    case 'codeowners':
      return codeownersOfPath(path, owners).join(' ') || 'nobody';
  }
}

/** The nearest folder with a manifest; the top folder if there is none. */
function packageFolderOfItem(path: string, tree: Tree): string {
  let folder = posix.dirname(path);
  while (folder !== '.' && !MANIFESTS.some((name) => tree.has(`${folder}/${name}`))) folder = posix.dirname(folder);
  return folder;
}
