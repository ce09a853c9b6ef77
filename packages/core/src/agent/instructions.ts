// Instructions for agents as the ecosystem writes them: AGENTS.md and CLAUDE.md, from the workspace's
// root down to the file worked on. The root's go into the system prompt; a deeper folder's are told
// with the first result that touches it.

import { readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';

const FILE_NAMES = ['AGENTS.md', 'CLAUDE.md'];
const FILE_CHARS_MAX = 24_000;

export class Instructions {
  readonly #root: string;
  readonly #seenFolders = new Set<string>();
  readonly #seenTexts = new Set<string>();

  constructor(root: string) {
    this.#root = resolve(root);
  }

  /** Those of the root. */
  async forRoot(): Promise<string | undefined> {
    return this.#read(this.#root);
  }

  /** Those of the folders between the root and `path` that were not told yet. */
  async newFor(path: string): Promise<string | undefined> {
    const from = relative(this.#root, resolve(this.#root, dirname(path)));
    if (from === '' || from.startsWith('..')) return undefined;
    const texts: string[] = [];
    let folder = this.#root;
    for (const name of from.split(sep)) {
      folder = join(folder, name);
      const text = await this.#read(folder);
      if (text !== undefined) texts.push(text);
    }
    return texts.length === 0 ? undefined : texts.join('\n\n');
  }

  async #read(folder: string): Promise<string | undefined> {
    if (this.#seenFolders.has(folder)) return undefined;
    this.#seenFolders.add(folder);
    const texts: string[] = [];
    for (const name of FILE_NAMES) {
      const text = await readFile(join(folder, name), 'utf8').catch(() => undefined);
      // One is often a copy of, or a link to, the other.
      if (text === undefined || text.trim() === '' || this.#seenTexts.has(text)) continue;
      this.#seenTexts.add(text);
      const path = join(relative(this.#root, folder), name);
      texts.push(`Instructions of this repository (${path}):\n${text.slice(0, FILE_CHARS_MAX).trim()}`);
    }
    return texts.length === 0 ? undefined : texts.join('\n\n');
  }
}
