// Undo log: copies of files from before each turn changed them, so that turns can be undone, newest first.
//
// Guarantees
//   1. A file is copied byte for byte before a call can change it: by name for file tools, all files that are not
//      ignored for commands (up to the limits below). Copies are in the session's folder and survive the process.
//   2. An undo restores all files of a turn or none. It refuses if one of them has changed since the turn.
//
// Crash: the list of copies is on disk before the call runs. The next process ends the turn as it finds the files.

import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { tidyToolPath } from '@drover/core/tools/files/paths';
import type { Tool } from '@drover/core/tools/tool';
import type { Json } from '@drover/protocol/json';
import { Copies, type Copy } from './copies.ts';
import { type Folder, listChatFiles } from '../list-files.ts';

const OPEN = 'open.json';

/** A file of a turn: its copy from before, and the hash of its content afterwards (null: no file). */
type Changed = Copy & { readonly after: string | null };

type UndoTurn = { readonly files: readonly Changed[]; readonly isUndone: boolean };

export class UndoLog {
  readonly #folder: string;
  readonly #place: Folder;
  readonly #copies: Copies;
  #open = new Map<string, Copy>(); // by path: files of this turn as they were before it
  #isWhole = false; // all files were copied in this turn
  #last: Promise<void> = Promise.resolve();

  private constructor(folder: string, place: Folder) {
    this.#folder = folder;
    this.#place = place;
    this.#copies = new Copies(join(folder, 'copies'), place.cwd);
  }

  /** Opens the log of a session. Ends a turn that a crash left open. */
  static async open(folder: string, place: Folder): Promise<UndoLog> {
    const log = new UndoLog(folder, place);
    if (!existsSync(join(folder, OPEN))) return log;
    const { files, isWhole } = JSON.parse(await readFile(join(folder, OPEN), 'utf8')) as Opened;
    log.#open = new Map(files.map((copy) => [copy.path, copy]));
    log.#isWhole = isWhole;
    await log.endTurn();
    return log;
  }

  begin(): void {
    this.#open.clear();
    this.#isWhole = false;
  }

  /** Copies the files that a call may change. Calls of an answer wait for each other here. */
  before(tool: Tool, input: Json): Promise<void> {
    if (tool.access !== 'write' && tool.access !== 'run') return Promise.resolve();
    this.#last = this.#last.then(() =>
      tool.access === 'run' ? this.#copyAll() : this.#copy(tool.touches(input).map(tidyToolPath)),
    );
    return this.#last;
  }

  /** Notes what the turn has changed. Returns the number of files. */
  async endTurn(): Promise<number> {
    await this.#last;
    if (this.#open.size === 0 && !this.#isWhole) return 0;
    if (this.#isWhole)
      for (const path of await listChatFiles(this.#place))
        if (!this.#open.has(path)) this.#open.set(path, { path, copy: null, mode: 0, stamp: null });
    const files: Changed[] = [];
    for (const copy of this.#open.values()) {
      if (await this.#copies.isUntouched(copy)) continue;
      const after = await this.#copies.hashOf(copy.path);
      if (after !== (await this.#copies.hashBefore(copy))) files.push({ ...copy, after });
    }
    if (files.length > 0)
      await this.#write(`${String(await this.#nextNumber()).padStart(6, '0')}.json`, { files, isUndone: false });
    await rm(join(this.#folder, OPEN), { force: true });
    this.begin();
    return files.length;
  }

  /** Undoes the newest turn that changed files, and returns their paths. Throws UsageError if it can't. */
  async undo(): Promise<readonly string[]> {
    const [name, turn] = (await this.#turns()).findLast(([, { isUndone }]) => !isUndone) ?? [];
    if (name === undefined || turn === undefined) throw new UsageError('there is no turn to undo that changed files');
    const changed: string[] = [];
    for (const { path, after } of turn.files) if ((await this.#copies.hashOf(path)) !== after) changed.push(path);
    if (changed.length > 0)
      throw new UsageError(
        `nothing was undone: changed since that turn: ${changed.join(', ')}; restore or remove the later changes first`,
      );
    for (const file of turn.files) await this.#copies.restore(file);
    await this.#write(name, { ...turn, isUndone: true });
    return turn.files.map(({ path }) => path);
  }

  /** Each file that the session has changed, as it was before: the text, or undefined if there was none. */
  async originals(): Promise<ReadonlyMap<string, string | undefined>> {
    const first = new Map<string, string | undefined>();
    for (const [, { files, isUndone }] of await this.#turns())
      for (const file of isUndone ? [] : files)
        if (!first.has(file.path)) first.set(file.path, await this.#copies.textOf(file));
    return first;
  }

  async #copy(paths: readonly string[]): Promise<void> {
    const fresh = paths.filter((path) => !this.#open.has(path));
    for (const path of fresh) this.#open.set(path, await this.#copies.keep(path));
    if (fresh.length > 0) await this.#writeOpen();
  }

  async #copyAll(): Promise<void> {
    if (this.#isWhole) return;
    await this.#copy(await listChatFiles(this.#place));
    this.#isWhole = true;
    await this.#writeOpen();
  }

  #writeOpen(): Promise<void> {
    return this.#write(OPEN, { files: [...this.#open.values()], isWhole: this.#isWhole });
  }

  async #write(name: string, value: UndoTurn | Opened): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    const path = join(this.#folder, name);
    await writeFile(`${path}.new`, JSON.stringify(value), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  async #turns(): Promise<readonly (readonly [name: string, turn: UndoTurn])[]> {
    const names = existsSync(this.#folder) ? await readdir(this.#folder) : [];
    const turns = names.filter((name) => /^\d+\.json$/.test(name)).toSorted();
    return Promise.all(
      turns.map(
        async (name) => [name, JSON.parse(await readFile(join(this.#folder, name), 'utf8')) as UndoTurn] as const,
      ),
    );
  }

  async #nextNumber(): Promise<number> {
    const last = (await this.#turns()).at(-1)?.[0] ?? '0';
    return Number.parseInt(last, 10) + 1;
  }
}

type Opened = { readonly files: readonly Copy[]; readonly isWhole: boolean };
