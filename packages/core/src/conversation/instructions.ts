// Instruction files for agents: AGENTS.md and CLAUDE.md, from the repository's root down to the file in use.
//
// Files down to the working folder go into the system prompt. Files of deeper folders are appended to the first
// result that touches the folder.
//
// Repositories are untrusted: a file is skipped, with a warning, if it is not a regular file, is larger than 1 MB,
// or is a link out of the repository.

import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { readOwnFile } from '../files/own-file.ts';

const FILE_NAMES = ['AGENTS.md', 'CLAUDE.md'];
const FILE_CHARS_MAX = 24_000;

/** `text` is undefined if there are no new instructions; `leftOut` holds a warning for each skipped file. */
export type ToldInstructions = { readonly text: string | undefined; readonly leftOut: readonly string[] };

/** `isNew` is false if the files have not changed since the last read. */
export type ToldAtStart = ToldInstructions & { readonly isNew: boolean };

export class Instructions {
  readonly #cwd: string;
  readonly #root: string;
  readonly #seenFolders = new Set<string>();
  readonly #seenTexts = new Set<string>();
  #start: { readonly told: string; readonly texts: readonly string[] } | undefined;

  constructor(cwd: string) {
    this.#cwd = resolve(cwd);
    this.#root = repositoryOfInstructions(this.#cwd);
  }

  /**
   * Reads the files from the repository's root down to the working folder. Also makes `newFor` check deeper
   * folders again; it returns their texts only if they have changed.
   */
  async forStart(): Promise<ToldAtStart> {
    this.#seenFolders.clear();
    for (const text of this.#start?.texts ?? []) this.#seenTexts.delete(text);
    const deeper = new Set(this.#seenTexts);
    this.#seenTexts.clear();
    const told = await this.#told(this.#cwd);
    const texts = [...this.#seenTexts];
    for (const text of deeper) this.#seenTexts.add(text);
    const all = JSON.stringify(told);
    const isNew = all !== this.#start?.told;
    this.#start = { told: all, texts };
    return { ...told, isNew };
  }

  /** Returns the instructions of folders on the way to `path` that were not returned before. */
  async newFor(path: string): Promise<ToldInstructions> {
    return this.#told(dirname(resolve(this.#cwd, path)));
  }

  async #told(folder: string): Promise<ToldInstructions> {
    const way = relative(this.#root, folder);
    if (way.startsWith('..')) return { text: undefined, leftOut: [] };
    const names = way === '' ? [] : way.split(sep);
    const folders = [this.#root, ...names.map((_, at) => join(this.#root, ...names.slice(0, at + 1)))];
    const texts: string[] = [];
    const leftOut: string[] = [];
    for (const each of folders) {
      if (this.#seenFolders.has(each)) continue;
      this.#seenFolders.add(each);
      for (const name of FILE_NAMES) await this.#read(join(each, name), { texts, leftOut });
    }
    return { text: texts.length === 0 ? undefined : texts.join('\n\n'), leftOut };
  }

  async #read(path: string, { texts, leftOut }: { readonly texts: string[]; readonly leftOut: string[] }) {
    const shown = relative(this.#root, path);
    const found = await readOwnFile({ path, within: this.#root });
    if (found.kind === 'missing') return;
    if (found.kind === 'refused') {
      leftOut.push(`${shown} ${found.problem}, so its instructions are left out; ${found.fix}`);
      return;
    }
    const text = found.bytes.toString('utf8').slice(0, FILE_CHARS_MAX).trim();
    // CLAUDE.md is often a copy of AGENTS.md, or a link to it.
    if (text === '' || this.#seenTexts.has(text)) return;
    this.#seenTexts.add(text);
    texts.push(`Instructions of this repository (${shown}):\n${text}`);
  }
}

function repositoryOfInstructions(cwd: string): string {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return folder;
    if (folder === dirname(folder)) return cwd;
  }
}
