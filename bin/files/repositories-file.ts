// The file that names repositories: where each is, and the revision that is worked on.
//
//   repositories:
//     - { path: ../billing, revision: 3f2c1a7 }
//     - { url: "https://example.com/shop.git", revision: v1.4.0 }

import { basename, dirname, resolve } from 'node:path';
import { z } from 'zod';
import { requireOwnFile } from '@drover/core/files/own-file';
import type { Io } from '../io.ts';
import type { SpecFile } from './batch-spec.ts';
import { requireFileDocument } from './document.ts';
import { text } from './values.ts';

const REPOSITORIES_MAX = 1_000;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** A commit of digits alone is a number to YAML. */
const revision = z
  .union([text, z.number()], { error: 'must be a commit, a tag or a branch, so that all jobs work on the same' })
  .refine((written) => !String(written).startsWith('-'), { error: 'a revision does not begin with -' });

const repository = z
  .strictObject({
    name: text.exactOptional().describe('Letters, digits, ., - and _. Default: the last part of path or url.'),
    path: text.exactOptional().describe('A folder, relative to this file. Give either path or url.'),
    url: text.exactOptional().describe('An address that git can clone.'),
    revision: revision.describe('A commit, a tag or a branch, so that all jobs work on the same.'),
  })
  .refine(({ path, url }) => (path === undefined) !== (url === undefined), {
    error: 'a repository needs either path or url',
  });

export const repositoriesSchema = z.strictObject({
  repositories: z
    .array(repository)
    .min(1, { error: 'must name at least one repository' })
    .max(REPOSITORIES_MAX)
    .describe('The repositories of the batch.'),
});

export type RepositoryEntry = {
  readonly name: string;
  readonly at: { readonly path: string } | { readonly url: string };
  readonly revision: string;
  readonly place: string; // position in the file
};

/** Paths are relative to the file that contains them. Throws UsageError. */
export async function readRepositoriesFile(
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
  return parseRepositoriesFile(bytes.toString('utf8'), repos, dirname(path));
}

/** Throws UsageError. */
export function parseRepositoriesFile(written: string, file: string, folder: string): readonly RepositoryEntry[] {
  const schema = repositoriesSchema.superRefine(({ repositories }, context) => {
    const names = repositories.map((entry) => repositoryEntryName(entry, folder));
    names.forEach((name, at) => {
      const tell = (message: string) => context.addIssue({ code: 'custom', path: ['repositories', at], message });
      if (!NAME.test(name)) tell(`'${name}' can't be the name of a repository; give it a name`);
      else if (names.findIndex((each) => each.toLowerCase() === name.toLowerCase()) < at)
        tell(`two repositories are called '${name}'; give one a name`);
    });
  });
  const document = requireFileDocument(written, file, { what: 'the file', schema });
  return document.value.repositories.map((entry, index) => {
    const steps = ['repositories', index];
    const { path, url = '', revision: given } = entry;
    return {
      name: repositoryEntryName(entry, folder),
      at: path === undefined ? { url } : { path: resolve(folder, path) },
      // The digits as written: a number has lost its leading zeros.
      revision: typeof given === 'string' ? given : document.written([...steps, 'revision']),
      place: document.place(steps),
    };
  });
}

function repositoryEntryName({ name, path, url = '' }: z.output<typeof repository>, folder: string): string {
  return name ?? basename(path === undefined ? url : resolve(folder, path)).replace(/\.git$/, '');
}
