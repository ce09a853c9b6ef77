// A file that names repositories: where each is, and the revision that is worked on.
//
//   repositories:
//     - { path: ../billing, revision: 3f2c1a7 }
//     - { url: "https://example.com/shop.git", revision: v1.4.0 }

import { basename, dirname, resolve } from 'node:path';
import type { Node } from 'yaml';
import { requireOwnFile } from '@drover/core/files/own-file';
import type { Io } from '../io.ts';
import { type DocumentReader, readDocument } from '../yaml-document.ts';
import type { SpecFile } from './spec-file.ts';

const REPOSITORIES_MAX = 1_000;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export type RepositoryEntry = {
  readonly name: string;
  readonly at: { readonly path: string } | { readonly url: string };
  readonly revision: string;
  readonly place: string; // where it stands in the file
};

/** Its path, and those in it, are relative to the file that names them. */
export async function readRepositories(
  { spec, file, place }: SpecFile,
  io: Io,
): Promise<readonly RepositoryEntry[] | undefined> {
  const { repos } = spec.select;
  if (repos === undefined) return undefined;
  const path = resolve(io.cwd, dirname(file), repos);
  const bytes = await requireOwnFile(
    { path },
    ({ problem, fix }) => `${place('select.repos')}: ${repos} ${problem}; ${fix}`,
  );
  return readDocument(bytes.toString('utf8'), repos, (reader) => entriesIn(reader, dirname(path)));
}

function entriesIn(reader: DocumentReader, folder: string): readonly RepositoryEntry[] {
  const { root } = reader;
  if (root === undefined) return reader.fail('the file is empty; it needs repositories') ?? [];
  const { repositories = [] } = reader.record<{ repositories: readonly RepositoryEntry[] }>(root, 'this', {
    repositories: (node) => reader.list(node, (entry) => entryIn(reader, entry, folder)),
  });
  if (repositories.length === 0) reader.mistake(root, 'there is no repository in it');
  if (repositories.length > REPOSITORIES_MAX) reader.mistake(root, `${REPOSITORIES_MAX} repositories are the most`);
  return repositories.filter((entry, at) => {
    const before = repositories.findIndex(({ name }) => name.toLowerCase() === entry.name.toLowerCase());
    if (before < at) reader.fail(`${entry.place}: two repositories are called '${entry.name}'; give one a name`);
    return before === at;
  });
}

function entryIn(reader: DocumentReader, node: Node, folder: string): RepositoryEntry | undefined {
  type Keys = { name: string; path: string; url: string; revision: string };
  const { name, path, url, revision } = reader.record<Keys>(node, 'a repository', {
    name: (entry) => reader.text(entry),
    path: (entry) => reader.text(entry),
    url: (entry) => reader.text(entry),
    revision: (entry) => revisionIn(reader, entry),
  });
  if ((path === undefined) === (url === undefined))
    return reader.mistake(node, 'a repository needs either path or url');
  if (revision === undefined)
    return reader.mistake(
      node,
      'a repository needs a revision: a commit, a tag or a branch, so that all jobs work on the same',
    );
  const found = name ?? basename(path === undefined ? (url ?? '') : resolve(folder, path)).replace(/\.git$/, '');
  if (!NAME.test(found)) return reader.mistake(node, `'${found}' can't be the name of a repository; give it a name`);
  const at = path === undefined ? { url: url ?? '' } : { path: resolve(folder, path) };
  return { name: found, at, revision, place: reader.place(node) };
}

/** A commit of digits alone is a number to YAML. */
function revisionIn(reader: DocumentReader, node: Node): string | undefined {
  const text = /^[0-9]+$/.test(String(node)) ? String(node) : reader.text(node);
  return text?.startsWith('-') === true ? reader.mistake(node, `'${text}' is no revision`) : text;
}
