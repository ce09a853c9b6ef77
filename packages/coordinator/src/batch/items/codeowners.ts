// CODEOWNERS: who owns which paths. The last line that matches counts. Pure.

import { matchesGlob } from 'node:path';

/** Possible paths of the file. The first that exists counts. */
export const CODEOWNERS_PATHS = ['.github/CODEOWNERS', '.gitlab/CODEOWNERS', 'CODEOWNERS', 'docs/CODEOWNERS'];

export type Owners = readonly { readonly globs: readonly string[]; readonly owners: readonly string[] }[];

export function parseCodeowners(text: string): Owners {
  return text.split('\n').flatMap((line) => {
    // GitLab's section headings contain no patterns.
    const words = line
      .replace(/(^|\s)#.*$/, '')
      .trim()
      .split(/(?<!\\)\s+/);
    const [pattern = '', ...owners] = words;
    return pattern === '' || /^\^?\[/.test(pattern)
      ? []
      : [{ globs: globsOfCodeownersPattern(pattern.replaceAll('\\ ', ' ')), owners }];
  });
}

export function codeownersOfPath(path: string, owners: Owners): readonly string[] {
  return owners.findLast(({ globs }) => globs.some((glob) => matchesGlob(path, glob)))?.owners ?? [];
}

// As in .gitignore: a pattern with a slash before its end is anchored, another one matches in every folder, and a
// folder covers everything below it.
function globsOfCodeownersPattern(pattern: string): readonly string[] {
  const isFolder = pattern.endsWith('/');
  const plain = pattern.replace(/^\//, '').replace(/\/$/, '');
  if (plain === '') return ['**'];
  const isAnchored = pattern.startsWith('/') || plain.includes('/');
  const anywhere = isAnchored ? plain : `**/${plain}`;
  // `docs/*` covers the files in docs, but not those in folders below it.
  const isFiles = plain.endsWith('/*');
  return [...(isFolder ? [] : [anywhere]), ...(isFiles ? [] : [`${anywhere}/**`])];
}
