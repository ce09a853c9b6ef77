// Finds every file of a project that can make drover do something: configs, MCP servers, hooks, skills and agents.
//
// KINDS lists them. A file counts only if the user approved it; see project.ts.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { lstatIfThere } from '@drover/core/files/lookup';
import { type ReadEntry, readProjectFile, readProjectFolder, type Unreadable } from './project-file.ts';
import type { ProjectPlace } from './place.ts';

// A stranger's repository may hold any number of them.
const ENTRIES_MAX = 500;

export type ProjectKind = 'config' | 'mcp' | 'hooks' | 'skill' | 'agent';

type Search =
  /** One file. `has`: only if it is a JSON object with this key, or cannot be read as JSON. */
  | { readonly kind: ProjectKind; readonly file: string; readonly has?: string }
  /** All files in a folder whose names end so. */
  | { readonly kind: ProjectKind; readonly folder: string; readonly ends: string }
  /** All folders in a folder that hold this file. */
  | { readonly kind: ProjectKind; readonly folder: string; readonly main: string };

const SKILL_FILE = 'SKILL.md';

/** Where they are, in each folder from the one in use up to the top. Earlier ones win over later ones. */
const KINDS: readonly Search[] = [
  { kind: 'config', file: '.drover/config.yaml' },
  { kind: 'mcp', file: '.mcp.json' },
  { kind: 'hooks', file: '.claude/settings.json', has: 'hooks' },
  { kind: 'skill', folder: '.drover/skills', main: SKILL_FILE },
  { kind: 'skill', folder: '.agents/skills', main: SKILL_FILE },
  { kind: 'skill', folder: '.claude/skills', main: SKILL_FILE },
  { kind: 'agent', folder: '.drover/agents', ends: '.md' },
  { kind: 'agent', folder: '.agents/agents', ends: '.md' },
  { kind: 'agent', folder: '.claude/agents', ends: '.md' },
  { kind: 'agent', folder: '.codex/agents', ends: '.toml' },
];

export type FoundFile = {
  readonly kind: ProjectKind;
  /** Relative to the repository. */
  readonly name: string;
  readonly path: string;
  readonly read: ReadEntry | Unreadable;
};

/** `own`: folders of the user, which belong to no project. */
export async function findTrustFiles(place: ProjectPlace, own: readonly string[]): Promise<readonly FoundFile[]> {
  const found: FoundFile[] = [];
  for (const folder of place.folders) {
    const configs = found.filter(({ kind }) => kind === 'config').length;
    for (const search of KINDS) {
      if (own.includes(join(folder, topOfTrustSearch(search)))) continue;
      // Only the nearest config is in use.
      if (search.kind === 'config' && configs > 0) continue;
      found.push(...(await searchTrustFiles(search, folder, place.repository)));
    }
  }
  return found.slice(0, ENTRIES_MAX);
}

/** The first name on the way to what is searched. */
function topOfTrustSearch(search: Search): string {
  return ('file' in search ? search.file : search.folder).split('/', 1)[0] ?? '';
}

async function searchTrustFiles(search: Search, folder: string, repository: string): Promise<readonly FoundFile[]> {
  const names = 'file' in search ? [search.file] : await namesInTrustSearch(join(folder, search.folder), search.folder);
  const found: FoundFile[] = [];
  for (const name of names) {
    if ('ends' in search && !name.endsWith(search.ends)) continue;
    const path = join(folder, name);
    const read =
      'main' in search
        ? await readProjectFolder(path, search.main, repository)
        : await readProjectFile(path, repository);
    if (read === undefined || ('file' in search && !hasTrustKey(read, search.has))) continue;
    const below = folder === repository ? name : `${folder.slice(repository.length + 1)}/${name}`;
    found.push({ kind: search.kind, name: below, path, read });
  }
  return found;
}

/** Lists the entries of a folder in a stable order, as paths that begin with `prefix`. */
async function namesInTrustSearch(folder: string, prefix: string): Promise<readonly string[]> {
  if ((await lstatIfThere(folder)) === undefined) return [];
  try {
    const names = await readdir(folder);
    return names
      .toSorted()
      .slice(0, ENTRIES_MAX)
      .map((name) => `${prefix}/${name}`);
  } catch (error) {
    // Not a folder, or one that may not be read.
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  }
}

function hasTrustKey(read: ReadEntry | Unreadable, key: string | undefined): boolean {
  if (key === undefined || 'problem' in read) return true;
  try {
    const value: unknown = JSON.parse(read.text);
    return typeof value === 'object' && value !== null && Object.hasOwn(value, key);
  } catch (error) {
    if (error instanceof SyntaxError) return true;
    throw error;
  }
}
