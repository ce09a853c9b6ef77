// The cache of task results between runs: `<home>/cache/batch/<2 digits>/<key>.json`.
//
// KEY
//   Everything that decides a worker's work, and nothing else: the model, the task's text and gates, the content of
//   its files, and the instructions above them. Order, date and commit are not in it, so a change of three files
//   invalidates three tasks.
//
// VALUE
//   The change: each path with its content before and after. It is used only if every changed path is as it was
//   before. Like any other work it passes the merge train and its gates. A task with its own gates that changed
//   nothing is reused only on the same tree, because its gates saw the whole tree.
//
// The cache grows until `drover gc --older-than` removes entries that no batch used for that long.

import { createHash } from 'node:crypto';
import { readdir, readFile, rm, utimes } from 'node:fs/promises';
import { join, posix } from 'node:path';
import * as z from 'zod/mini';
import { isErrorCode } from '../git/removal.ts';
import type { BatchTask } from './tasks.ts';
import type { Tree } from './items/tree.ts';
import { writeBatchFileWhole } from './whole-file.ts';
import { statIfThere } from '@drover/core/files/lookup';
import { bestEffort } from '@drover/core/promises';

const ENTRY_CHARS_MAX = 16 * 1024 * 1024;
const INSTRUCTIONS = ['AGENTS.md', 'CLAUDE.md'];

const CHANGE = z.object({
  path: z.string(),
  before: z.optional(z.string()), // object id; absent for a new file
  after: z.optional(z.object({ mode: z.string(), content: z.string() })), // base64; absent if the file was removed
});
const ENTRY = z.object({
  v: z.literal(1),
  summary: z.string(),
  changes: z.array(CHANGE),
  tree: z.optional(z.string()), // digest of the tree on which the task's own gates passed
});

export type CachedChange = z.infer<typeof CHANGE>;
export type CacheEntry = z.infer<typeof ENTRY>;

/** The place of a task's entry, and whether the task has its own gates. */
export type CacheSlot = { readonly key: string; readonly gated?: boolean };

export function batchCacheSlot(task: BatchTask, model: string, tree: Tree): CacheSlot {
  return { key: batchCacheKey(task, model, tree), ...(task.gates.length > 0 && { gated: true }) };
}

/** Returns the entry of a task that changed nothing. */
export function entryOfUnchangedTask({ gated = false }: CacheSlot, summary: string, tree: Tree): CacheEntry {
  return { v: 1, summary, changes: [], ...(gated && { tree: digestOfBatchTree(tree) }) };
}

const digests = new WeakMap<Tree, string>();

function digestOfBatchTree(tree: Tree): string {
  const files = () => JSON.stringify([...tree.values()].map(({ path, mode, blob }) => [path, mode, blob]));
  const digest = digests.get(tree) ?? createHash('sha256').update(files()).digest('hex');
  digests.set(tree, digest);
  return digest;
}

function batchCacheKey(task: BatchTask, model: string, tree: Tree): string {
  const { title, prompt, gates, files } = task;
  const content = (path: string) => [path, tree.get(path)?.mode, tree.get(path)?.blob];
  const told = instructionFoldersOfBatchTask(files, tree).map(content);
  const all = { v: 1, model, title, prompt, gates, files: files.map(content), told };
  return createHash('sha256').update(JSON.stringify(all)).digest('hex');
}

/** Returns an entry that fits this tree, and renews its time of last use. */
export async function readBatchCacheEntry(home: string, slot: CacheSlot, tree: Tree): Promise<CacheEntry | undefined> {
  const entry = await findBatchCacheEntry(home, slot, tree);
  // Without the new time, gc removes the entry a little earlier.
  if (entry !== undefined) await bestEffort(utimes(batchCachePath(home, slot.key), new Date(), new Date()));
  return entry;
}

/** Returns undefined if there is no usable entry. Changes nothing on disk. */
export async function findBatchCacheEntry(
  home: string,
  { key, gated = false }: CacheSlot,
  tree: Tree,
): Promise<CacheEntry | undefined> {
  const text = await readFile(batchCachePath(home, key), 'utf8').catch((error: unknown) => {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  });
  const entry = text === undefined ? undefined : parseBatchCacheEntry(text);
  if (entry === undefined || !entry.changes.every(({ path, before }) => tree.get(path)?.blob === before))
    return undefined;
  const isUntested = gated && entry.changes.length === 0 && entry.tree !== digestOfBatchTree(tree);
  return isUntested ? undefined : entry;
}

export type OldEntry = { readonly path: string; readonly bytes: number };

/** Lists entries that were not used since this time. */
export async function listBatchCacheEntriesBefore(home: string, timeMs: number): Promise<readonly OldEntry[]> {
  const names = await readdir(batchCacheFolder(home), { recursive: true }).catch(() => []);
  const old: OldEntry[] = [];
  for (const name of names.filter((each) => each.endsWith('.json'))) {
    const path = join(batchCacheFolder(home), name);
    const found = await statIfThere(path);
    if (found !== undefined && found.mtimeMs < timeMs) old.push({ path, bytes: found.size });
  }
  return old;
}

export async function removeBatchCacheEntriesBefore(home: string, timeMs: number): Promise<void> {
  for (const { path } of await listBatchCacheEntriesBefore(home, timeMs)) await rm(path, { force: true });
}

export async function writeBatchCacheEntry(home: string, key: string, entry: CacheEntry): Promise<void> {
  const text = JSON.stringify(entry);
  if (text.length > ENTRY_CHARS_MAX) return;
  await writeBatchFileWhole(batchCachePath(home, key), text);
}

function batchCacheFolder(home: string): string {
  return join(home, 'cache', 'batch');
}

function batchCachePath(home: string, key: string): string {
  return join(batchCacheFolder(home), key.slice(0, 2), `${key}.json`);
}

// An unreadable entry counts as missing: the task runs again and replaces it.
function parseBatchCacheEntry(text: string): CacheEntry | undefined {
  try {
    const { data } = ENTRY.safeParse(JSON.parse(text));
    return data;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** All folders from the top of the repository down to the files. */
function instructionFoldersOfBatchTask(files: readonly string[], tree: Tree): readonly string[] {
  const folders = new Set<string>(['']);
  for (const path of files)
    for (let folder = posix.dirname(path); folder !== '.'; folder = posix.dirname(folder)) folders.add(`${folder}/`);
  return [...folders]
    .flatMap((folder) => INSTRUCTIONS.map((name) => `${folder}${name}`))
    .filter((path) => tree.has(path))
    .toSorted();
}
