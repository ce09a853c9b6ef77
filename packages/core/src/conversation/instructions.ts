// Instructions for agents as the ecosystem writes them: AGENTS.md and CLAUDE.md, from the repository's
// root down to the file worked on. Those down to the working folder go into the system prompt; a deeper
// folder's are told with the first result that touches it.
//
// A repository is a stranger's: a link that leads out of it is not followed, and a file has a bound.

import { existsSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';

const FILE_NAMES = ['AGENTS.md', 'CLAUDE.md'];
const FILE_CHARS_MAX = 24_000;
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'ELOOP']);

export class Instructions {
  readonly #cwd: string;
  readonly #root: string;
  readonly #seenFolders = new Set<string>();
  readonly #seenTexts = new Set<string>();

  constructor(cwd: string) {
    this.#cwd = resolve(cwd);
    this.#root = repositoryOf(this.#cwd);
  }

  /** Those from the repository's root down to the working folder. */
  async forStart(): Promise<string | undefined> {
    return this.#told(this.#cwd);
  }

  /** Those on the way to `path` that were not told yet. */
  async newFor(path: string): Promise<string | undefined> {
    return this.#told(dirname(resolve(this.#cwd, path)));
  }

  async #told(folder: string): Promise<string | undefined> {
    const way = relative(this.#root, folder);
    if (way.startsWith('..')) return undefined;
    const names = way === '' ? [] : way.split(sep);
    const folders = [this.#root, ...names.map((_, at) => join(this.#root, ...names.slice(0, at + 1)))];
    const texts: string[] = [];
    for (const each of folders) {
      if (this.#seenFolders.has(each)) continue;
      this.#seenFolders.add(each);
      for (const name of FILE_NAMES) texts.push(...(await this.#read(join(each, name))));
    }
    return texts.length === 0 ? undefined : texts.join('\n\n');
  }

  async #read(path: string): Promise<readonly string[]> {
    try {
      const real = await realpath(path);
      if (relative(await realpath(this.#root), real).startsWith('..')) return [];
      const text = (await readFile(real, 'utf8')).slice(0, FILE_CHARS_MAX).trim();
      // One is often a copy of, or a link to, the other.
      if (text === '' || this.#seenTexts.has(text)) return [];
      this.#seenTexts.add(text);
      return [`Instructions of this repository (${relative(this.#root, path)}):\n${text}`];
    } catch (error) {
      if (error instanceof Error && 'code' in error && NOT_THERE.has(String(error.code))) return [];
      throw error;
    }
  }
}

function repositoryOf(cwd: string): string {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return folder;
    if (folder === dirname(folder)) return cwd;
  }
}
