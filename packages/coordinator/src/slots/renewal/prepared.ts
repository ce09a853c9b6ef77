// Keeps the output of setup in a slot for later tasks: installed packages, a venv, hard links to shared dependencies.
//
// Guarantees
//   1. Kept paths are as setup left them: each file has its inode, mode, size and ctime, and what a worker added is
//      gone. Otherwise nothing is kept, and setup runs again.
//   2. A file with several names is compared by mtime, because each further link changes its ctime. A folder of
//      linked dependencies is compared by its own ctime instead: no name in it was replaced. An audit compares what
//      the links lead to.
//   3. Nothing is kept for another key, which covers lockfiles, manifests, commands and the PATH.
//   4. Nothing outside the tree is read or removed, even through links that a worker left.
//
// Crash: the record is removed before setup begins, and written whole after it.

import {
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import * as z from 'zod/mini';
import type { LinkedFolder, LinkedFolders } from '../../dependencies/linked.ts';
import { isErrorCode, setFolderAside } from '../../git/removal.ts';

const ENTRIES_MAX = 300_000; // a larger tree is set up again for every task
const ENTRIES_A_TURN = 2_000;

const RECORD = z.object({
  key: z.string(),
  /** Files that git does not ignore. They are kept out of commits. */
  made: z.readonly(z.array(z.string())),
  /** Topmost paths that no commit has, one character per byte. */
  paths: z.readonly(z.array(z.string())),
  state: z.record(z.string(), z.string()),
});

type PreparedRecord = Readonly<z.infer<typeof RECORD>>;
export type TreeState = Readonly<Record<string, string>>;

type SetUpChange = {
  /** Paths in the tree that are neither in its commit nor kept. */
  readonly before: readonly string[];
  readonly state: TreeState | undefined; // of `before`
  readonly after: readonly string[];
  readonly linked: LinkedFolders | undefined;
};

/** Dependencies that workspaces share: no output of setup, but kept like it. */
export type SharedPaths = { readonly folders: readonly string[]; readonly linked: LinkedFolders | undefined };

const NONE: ReadonlySet<string> = new Set();

export class PreparedTree {
  readonly #file: string;
  readonly #tree: string;
  #kept: PreparedRecord | undefined;

  constructor(slotFolder: string, tree: string) {
    this.#file = join(slotFolder, 'prepared.json');
    this.#tree = tree;
  }

  /** Files that setup made and git does not ignore; undefined if setup has to run. */
  madeFor(key: string | undefined): readonly string[] | undefined {
    return key !== undefined && this.#kept?.key === key ? this.#kept.made : undefined;
  }

  /** The paths that a sweep leaves in place. */
  async keep(key: string | undefined, trash: string): Promise<ReadonlySet<string>> {
    const record = key === undefined ? undefined : this.#read();
    const isSound = record?.key === key && record !== undefined && (await this.#isAsRecorded(record, trash));
    if (!isSound) {
      this.forget();
      return NONE;
    }
    this.#kept = record;
    return new Set(record.paths);
  }

  forget(): void {
    this.#kept = undefined;
    rmSync(this.#file, { force: true });
  }

  /** Keeps everything added since `before`. Keeps nothing if setup changed existing paths. */
  async note({ key, made }: Pick<PreparedRecord, 'key' | 'made'>, change: SetUpChange): Promise<void> {
    const paths = withoutPreparedPaths(change.after, change.before);
    const state = await preparedSlotState(this.#tree, paths, change.linked);
    const isUnchanged =
      JSON.stringify(await preparedSlotState(this.#tree, change.before)) === JSON.stringify(change.state);
    if (state === undefined || !isUnchanged) return;
    const draft = `${this.#file}.new`;
    writeFileSync(draft, JSON.stringify({ key, made, paths, state } satisfies PreparedRecord));
    renameSync(draft, this.#file);
  }

  #read(): PreparedRecord | undefined {
    try {
      return RECORD.parse(JSON.parse(readFileSync(this.#file, 'utf8')));
    } catch (error) {
      if (isErrorCode(error, 'ENOENT') || error instanceof SyntaxError || error instanceof z.core.$ZodError)
        return undefined;
      throw error;
    }
  }

  /** Removes what was added meanwhile. Returns false if anything else differs. */
  async #isAsRecorded({ paths, state }: PreparedRecord, trash: string): Promise<boolean> {
    const added: Buffer[] = [];
    let same = 0;
    const within = namesInLinkedFolders(state);
    const isSame = await walkPreparedPaths(this.#tree, paths, (path, found) => {
      const recorded = state[path];
      if (recorded === undefined) {
        added.push(placeInPreparedTree(this.#tree, path));
        return [];
      }
      same += 1;
      const look = recorded.startsWith('l')
        ? lookOfLinkedFolder(found)
        : lookOfPreparedFile(found, recorded.startsWith('c'));
      return recorded === look ? (within.get(path) ?? 'all') : 'stop';
    });
    return isSame && same === Object.keys(state).length && added.every((place) => setFolderAside(place, trash));
  }
}

/** Returns undefined if there is too much, or an entry that is not a file, folder or link. */
export async function preparedSlotState(
  tree: string,
  paths: readonly string[],
  linked: LinkedFolders = new Map(),
): Promise<TreeState | undefined> {
  const state: Record<string, string> = {};
  let count = 0;
  const isWhole = await walkPreparedPaths(tree, paths, (path, found) => {
    count += 1;
    if (count > ENTRIES_MAX || !(found.isFile() || found.isDirectory() || found.isSymbolicLink())) return 'stop';
    const before = linked.get(path);
    const look = lookOfLinkedFolder(found);
    const isLinked = before?.isSettled === true && look === lookOfLinkedFolder(before);
    state[path] = isLinked ? look : lookOfPreparedFile(found, found.nlink === 1);
    return isLinked ? before.folders : 'all';
  });
  return isWhole ? state : undefined;
}

/** Times of a folder are left out, because its entries are compared themselves. */
function lookOfPreparedFile(found: Stats, isSingle: boolean): string {
  if (found.isDirectory()) return `d ${found.ino} ${found.mode}`;
  return `${isSingle ? `c ${found.ctimeMs}` : `m ${found.mtimeMs}`} ${found.ino} ${found.mode} ${found.size}`;
}

function lookOfLinkedFolder({ ctimeMs, ino, mode }: Pick<LinkedFolder, 'ctimeMs' | 'ino' | 'mode'>): string {
  return `l ${ctimeMs} ${ino} ${mode}`;
}

/** By recorded linked folder: the names of the folders in it. */
function namesInLinkedFolders(state: TreeState): ReadonlyMap<string, readonly string[]> {
  const linked = Object.keys(state).filter((path) => state[path]?.startsWith('l') === true);
  const within = new Map<string, string[]>(linked.map((path) => [path, []]));
  for (const path of Object.keys(state)) {
    const end = path.lastIndexOf('/');
    within.get(path.slice(0, Math.max(0, end)))?.push(path.slice(end + 1));
  }
  return within;
}

/** Returns the names to descend into in a folder. */
type Look = (path: string, found: Stats) => 'all' | readonly string[] | 'stop';

/** Returns true if every path existed in a real folder and `look` stopped at none. */
async function walkPreparedPaths(tree: string, paths: readonly string[], look: Look): Promise<boolean> {
  const waiting = paths.toReversed();
  if (!paths.every((path) => isInPreparedTree(tree, path))) return false;
  for (let path = waiting.pop(), n = 1; path !== undefined; path = waiting.pop(), n++) {
    if (n % ENTRIES_A_TURN === 0) await nextTurn();
    const place = placeInPreparedTree(tree, path);
    const found = lstatSync(place, { throwIfNoEntry: false });
    if (found === undefined) return false;
    const next = look(path, found);
    if (next === 'stop') return false;
    if (!found.isDirectory()) continue;
    const names = next === 'all' ? readdirSync(place, { encoding: 'latin1' }) : next;
    for (const name of names) waiting.push(`${path}/${name}`);
  }
  return true;
}

function isInPreparedTree(tree: string, path: string): boolean {
  const folder = dirname(placeInPreparedTree(tree, path).toString('latin1'));
  try {
    return realpathSync(Buffer.from(folder, 'latin1'), { encoding: 'latin1' }) === folder;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES')) return false;
    throw error;
  }
}

function placeInPreparedTree(tree: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${tree}/`), Buffer.from(path, 'latin1')]);
}

export function withoutPreparedPaths(paths: readonly string[], others: readonly string[]): readonly string[] {
  return paths.filter((path) => !others.includes(path));
}
