// The files of the folder for @ completion: read once with ripgrep, which respects ignore files, when the user types
// the first @. Read again with each later message, since the agent makes files.

import { type Folder, listChatFiles } from '../list-files.ts';

const PATHS_MAX = 100_000;

export type PathsOptions = Folder & {
  /** Called when the list has been read. */
  readonly onRead: () => void;
};

export class Paths {
  readonly #options: PathsOptions;
  #paths: readonly string[] = [];
  #isRead = false;

  constructor(options: PathsOptions) {
    this.#options = options;
  }

  /** The paths known so far. The first call begins to read them. */
  list(): readonly string[] {
    if (!this.#isRead) void this.#read();
    this.#isRead = true;
    return this.#paths;
  }

  /** Lets the next `list` read again. */
  outdate(): void {
    this.#isRead = false;
  }

  async #read(): Promise<void> {
    this.#paths = await listChatFiles(this.#options, PATHS_MAX);
    this.#options.onRead();
  }
}
