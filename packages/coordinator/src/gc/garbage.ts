// Garbage of repositories' stores: lists what can be removed and why, and removes exactly that.
//
// Guarantees
//   1. A branch is removed only if its commit, or the landed commit with the same work, is reachable from the refs of
//      the user's repository.
//   2. A slot is removed only if no process holds it, no resumable run owns it, and it has no unlanded work of an
//      ended run.
//   3. Objects are removed only if no remaining branch needs them.
//   4. In doubt, and after any git error, everything stays. Each condition is checked again right before the removal.

import { existsSync } from 'node:fs';
import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DroverError } from '@drover/core/errors';
import { isJournalLocked, Lock } from '@drover/core/journal/file/lock';
import * as z from 'zod/mini';
import { gitAt, type Git } from '../git/git.ts';
import { isErrorCode, removeFolderTree } from '../git/removal.ts';
import { ownerOfSlot, slotFolder, slotLock } from '../slots/slot.ts';
import { REPOSITORY_FILE, SLOTS_FOLDER, STORE_FOLDER, storeTextOf, workspacesFolder } from '../store/store.ts';
import { lstatIfThere } from '@drover/core/files/lookup';

const FILES_COUNTED_MAX = 2_000_000;
// An object may exist before the branch that needs it.
const YOUNG_MS = 24 * 60 * 60_000;
const GONE = '.gone-';

export type Garbage = {
  readonly what: string;
  readonly why: string;
  readonly bytes: number;
  readonly target: Target;
};

type Target =
  | { readonly kind: 'branch'; readonly gitDir: string; readonly ref: string; readonly commit: string }
  | { readonly kind: 'slot'; readonly slotsFolder: string; readonly number: number }
  | { readonly kind: 'objects'; readonly gitDir: string; readonly paths: readonly string[] }
  | { readonly kind: 'folder'; readonly path: string };

export type Kept = { readonly what: string; readonly why: string };

export type GarbageOptions = {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  /** Runs that are at work or can be resumed. */
  readonly unfinished: ReadonlySet<string>;
  /** Landed commits by run. An unknown commit counts as not landed. */
  readonly landed?: ReadonlyMap<string, LandedWork>;
};

export type LandedWork = {
  readonly tasks: ReadonlySet<string>;
  readonly head: string; // the commit that contains all landed work
};

export type GarbageSurvey = { readonly garbage: readonly Garbage[]; readonly kept: readonly Kept[] };

/** Lists the garbage. Read-only. */
export async function findGarbage(options: GarbageOptions): Promise<GarbageSurvey> {
  const root = workspacesFolder(options.home);
  const surveys = await Promise.all((await garbageNamesIn(root)).map((key) => surveyGarbage(join(root, key), options)));
  return { garbage: surveys.flatMap(({ garbage }) => garbage), kept: surveys.flatMap(({ kept }) => kept) };
}

/** Removes listed items that may still be removed. Returns those that stay, with the reason. */
export async function removeGarbage(list: readonly Garbage[], options: GarbageOptions): Promise<readonly Kept[]> {
  const fresh = new Map((await findGarbage(options)).garbage.map((item) => [item.what, item]));
  const kept: Kept[] = [];
  for (const { what, target } of list) {
    const still = fresh.get(what);
    const isSame = still !== undefined && isSameGarbage(still.target, target);
    const why = isSame ? await removeGarbageItem(target, options) : 'it is in use by now, or has changed';
    if (why !== undefined) kept.push({ what, why });
  }
  return kept;
}

function isSameGarbage(now: Target, listed: Target): boolean {
  if (now.kind === 'objects' && listed.kind === 'objects') {
    const removable = new Set(now.paths);
    return listed.paths.every((path) => removable.has(path));
  }
  return JSON.stringify(now) === JSON.stringify(listed);
}

const REPOSITORY = z.object({ top: z.string(), commonDir: z.string() });

type GarbageContext = {
  readonly folder: string;
  readonly gitDir: string;
  readonly slotsFolder: string;
  readonly top: string;
  readonly commonDir: string;
  readonly isGone: boolean; // the user's repository
};

async function surveyGarbage(folder: string, options: GarbageOptions): Promise<GarbageSurvey> {
  try {
    const { top, commonDir } = REPOSITORY.parse(JSON.parse((await storeTextOf(join(folder, REPOSITORY_FILE))) ?? ''));
    const gitDir = join(folder, STORE_FOLDER);
    const slotsFolder = join(folder, SLOTS_FOLDER);
    const place = { folder, gitDir, slotsFolder, top, commonDir, isGone: !existsSync(commonDir) };
    const slots = await surveyGarbageSlots(place, options);
    const branches = await surveyGarbageBranches(place, options);
    const holdsNothing = branches.kept.length + branches.garbage.length + slots.kept.length === 0;
    if (place.isGone && holdsNothing) return { garbage: [await wholeGarbageFolder(place)], kept: [] };
    const objects = await surveyGarbageObjects(place, { slots, branches }, options);
    return {
      garbage: [...slots.garbage, ...branches.garbage, ...objects],
      kept: [...slots.kept, ...branches.kept],
    };
  } catch (error) {
    const isExpected =
      error instanceof DroverError || error instanceof SyntaxError || error instanceof z.core.$ZodError;
    if (!isExpected && !(error instanceof Error && 'code' in error)) throw error;
    return { garbage: [], kept: [{ what: folder, why: `drover can't tell what is in it: ${error.message}` }] };
  }
}

async function wholeGarbageFolder({ folder, top }: GarbageContext): Promise<Garbage> {
  const target = { kind: 'folder', path: folder } as const;
  return {
    what: folder,
    why: `its repository ${top} is gone, and it holds no work`,
    bytes: await garbageBytesIn(folder),
    target,
  };
}

async function surveyGarbageSlots(place: GarbageContext, options: GarbageOptions): Promise<GarbageSurvey> {
  const garbage: Garbage[] = [];
  const kept: Kept[] = [];
  for (const name of await garbageNamesIn(place.slotsFolder)) {
    const path = join(place.slotsFolder, name);
    if (name.startsWith(GONE)) {
      const target = { kind: 'folder', path } as const;
      garbage.push({ what: path, why: 'what is left of a workspace', bytes: await garbageBytesIn(path), target });
    }
    if (!/^\d+$/.test(name)) continue;
    const number = Number(name);
    const reason = await whySlotIsNoGarbage(place, number, options);
    if (reason !== undefined) kept.push({ what: path, why: reason });
    else {
      const target = { kind: 'slot', slotsFolder: place.slotsFolder, number } as const;
      const why = `a workspace of ${place.top} that no run uses`;
      garbage.push({ what: path, why, bytes: await garbageBytesIn(path), target });
    }
  }
  return { garbage, kept };
}

async function whySlotIsNoGarbage(
  place: GarbageContext,
  number: number,
  options: GarbageOptions,
): Promise<string | undefined> {
  if (isJournalLocked(slotLock(place.slotsFolder, number))) return 'a run is at work in it';
  const folder = slotFolder(place.slotsFolder, number);
  const owner = ownerOfSlot(folder);
  if (owner === undefined) return undefined;
  if (options.unfinished.has(owner.run)) return `task ${owner.task} of ${owner.run} can be resumed in it`;
  // Changes since the base may exist in no commit.
  const indexFile = join(folder, 'git', 'index');
  const settings = { 'core.excludesFile': join(folder, 'git', 'exclude') };
  const git = gitAt({ gitDir: place.gitDir, workTree: join(folder, 'tree'), indexFile, settings, env: options.env });
  const { out } = await git(['ls-files', '-z', '--modified', '--deleted', '--others', '--exclude-standard']);
  return out === '' ? undefined : `it holds changes of task ${owner.task} of ${owner.run} that may be nowhere else`;
}

type StoreBranch = { readonly ref: string; readonly commit: string };

async function surveyGarbageBranches(place: GarbageContext, options: GarbageOptions): Promise<GarbageSurvey> {
  const { gitDir, isGone, top } = place;
  const branches = await listGarbageBranches(gitDir, options.env);
  if (isGone) {
    const why = `its repository ${top} is gone, so it may be the only copy`;
    return { garbage: [], kept: branches.map(({ ref }) => ({ what: describeGarbageRef(gitDir, ref), why })) };
  }
  const undelivered = await listUndeliveredCommits(place, branches, options.env);
  const delivered = await listDeliveredRuns(place, branches, options);
  const garbage: Garbage[] = [];
  const kept: Kept[] = [];
  for (const { ref, commit } of branches) {
    const what = describeGarbageRef(gitDir, ref);
    const run = runOfGarbageRef(ref);
    if (run === undefined) kept.push({ what, why: 'drover knows no such branch' });
    else if (options.unfinished.has(run)) kept.push({ what, why: `${run} can be resumed` });
    else if (undelivered.has(commit) && !(delivered.has(run) && hasGarbageLanded(ref, options.landed?.get(run))))
      kept.push({ what, why: `its work is in no branch of ${top}` });
    else {
      const target = { kind: 'branch', gitDir, ref, commit } as const;
      garbage.push({ what, why: `its work is in ${top}`, bytes: 0, target });
    }
  }
  return { garbage, kept };
}

function describeGarbageRef(gitDir: string, ref: string): string {
  return `${ref.replace('refs/heads/', '')} in ${gitDir}`;
}

function runOfGarbageRef(ref: string): string | undefined {
  return /^refs\/(?:heads\/)?drover\/([^/]+)\/./.exec(ref)?.[1];
}

async function listGarbageBranches(gitDir: string, env: GarbageOptions['env']): Promise<readonly StoreBranch[]> {
  if (!existsSync(gitDir)) return [];
  const { out } = await gitAt({ gitDir, env })(['for-each-ref', '--format=%(objectname) %(refname)']);
  return garbageLines(out).map((line) => ({
    commit: line.slice(0, line.indexOf(' ')),
    ref: line.slice(line.indexOf(' ') + 1),
  }));
}

/** Returns the commits of these branches that no ref of the user's repository contains. */
async function listUndeliveredCommits(
  { gitDir, commonDir }: GarbageContext,
  branches: readonly StoreBranch[],
  env: GarbageOptions['env'],
): Promise<ReadonlySet<string>> {
  if (branches.length === 0) return new Set();
  const user = gitAt({ gitDir: commonDir, env });
  const format = '--format=%(objecttype) %(objectname)%0a%(*objecttype) %(*objectname)';
  const { out } = await user(['for-each-ref', format]);
  const delivered = garbageLines(out).flatMap((line) => (line.startsWith('commit ') ? [`^${line.slice(7)}`] : []));
  const input = [...branches.map(({ commit }) => commit), ...delivered].join('\n');
  const list = await gitAt({ gitDir, env })(['rev-list', '--stdin'], { input: `${input}\n` });
  return new Set(garbageLines(list.out));
}

/** Returns the runs whose landed work is all contained in a ref of the user's repository. */
async function listDeliveredRuns(
  { commonDir }: GarbageContext,
  branches: readonly StoreBranch[],
  { landed, env }: GarbageOptions,
): Promise<ReadonlySet<string>> {
  const user = gitAt({ gitDir: commonDir, env });
  const delivered = new Set<string>();
  for (const run of new Set(branches.flatMap(({ ref }) => runOfGarbageRef(ref) ?? []))) {
    const head = landed?.get(run)?.head;
    if (head === undefined) continue;
    // git fails for a commit that the repository lacks.
    const { out, code } = await user(['for-each-ref', '--count=1', '--contains', head], { accept: [128, 129] });
    if (code === 0 && out !== '') delivered.add(run);
  }
  return delivered;
}

function hasGarbageLanded(ref: string, landed: LandedWork | undefined): boolean {
  const task = /^refs\/heads\/drover\/[^/]+\/(.+)$/.exec(ref)?.[1];
  return task !== undefined && landed?.tasks.has(task) === true;
}

type Others = { readonly slots: GarbageSurvey; readonly branches: GarbageSurvey };

// Loose objects only: a store has no packs.
async function surveyGarbageObjects(
  place: GarbageContext,
  { slots, branches }: Others,
  options: GarbageOptions,
): Promise<Garbage[]> {
  const { gitDir, top, isGone } = place;
  if (isGone || slots.kept.length > 0 || !existsSync(gitDir)) return [];
  const git = gitAt({ gitDir, env: options.env });
  const removed = new Set(branches.garbage.flatMap(({ target }) => (target.kind === 'branch' ? [target.ref] : [])));
  const staying = (await listGarbageBranches(gitDir, options.env)).filter(({ ref }) => !removed.has(ref));
  // A resumable run may need objects that are in no branch.
  if (staying.some(({ ref }) => options.unfinished.has(runOfGarbageRef(ref) ?? ''))) return [];
  const needed = await listGarbageObjects(git, staying);
  const paths: string[] = [];
  let bytes = 0;
  for (const { id, path } of await listLooseGarbage(gitDir)) {
    const { size, mtimeMs } = await lstat(path);
    if (needed.has(id) || Date.now() - mtimeMs < YOUNG_MS) continue;
    paths.push(path);
    bytes += size;
  }
  if (paths.length === 0) return [];
  const target = { kind: 'objects', gitDir, paths } as const;
  return [{ what: `objects in ${gitDir}`, why: `of runs on ${top} that are over`, bytes, target }];
}

async function listGarbageObjects(git: Git, branches: readonly StoreBranch[]): Promise<ReadonlySet<string>> {
  if (branches.length === 0) return new Set();
  const input = `${branches.map(({ commit }) => commit).join('\n')}\n`;
  const { out } = await git(['rev-list', '--objects', '--no-object-names', '--stdin'], { input });
  return new Set(garbageLines(out));
}

async function listLooseGarbage(gitDir: string): Promise<readonly { readonly id: string; readonly path: string }[]> {
  const objects = join(gitDir, 'objects');
  const folders = (await garbageNamesIn(objects)).filter((name) => /^[0-9a-f]{2}$/.test(name));
  const found = await Promise.all(
    folders.map(async (folder) =>
      (await garbageNamesIn(join(objects, folder)))
        .filter((name) => /^[0-9a-f]+$/.test(name))
        .map((name) => ({ id: folder + name, path: join(objects, folder, name) })),
    ),
  );
  return found.flat();
}

/** Returns why the item stays; undefined if it was removed. */
async function removeGarbageItem(target: Target, { env }: GarbageOptions): Promise<string | undefined> {
  try {
    switch (target.kind) {
      case 'branch':
        await gitAt({ gitDir: target.gitDir, env })(['update-ref', '-d', target.ref, target.commit]);
        return undefined;
      case 'slot':
        return await removeGarbageSlot(target.slotsFolder, target.number);
      case 'objects':
        await Promise.all(target.paths.map((path) => rm(path, { force: true })));
        return undefined;
      case 'folder':
        await removeFolderTree(target.path);
        return undefined;
    }
  } catch (error) {
    if (error instanceof DroverError || (error instanceof Error && 'code' in error)) return error.message;
    throw error;
  }
}

// The lock file stays: another process may wait for it, and a new file of that name would be a second lock.
export async function removeGarbageSlot(slotsFolder: string, number: number): Promise<string | undefined> {
  const lock = Lock.take(slotLock(slotsFolder, number));
  if (lock === undefined) return 'a run is at work in it';
  const gone = join(slotsFolder, `${GONE}${randomUUID()}`);
  try {
    await rename(slotFolder(slotsFolder, number), gone);
  } finally {
    lock.release();
  }
  await removeFolderTree(gone);
  return undefined;
}

/** The size of a folder with its content. */
export async function garbageBytesIn(path: string): Promise<number> {
  let bytes = 0;
  const waiting = [path];
  for (let n = 0; n < FILES_COUNTED_MAX; n++) {
    const at = waiting.pop();
    if (at === undefined) break;
    const found = await lstatIfThere(at);
    if (found?.isDirectory() === true) {
      const names = await garbageNamesIn(at).catch(() => []);
      waiting.push(...names.map((name) => join(at, name)));
    } else bytes += found?.size ?? 0;
  }
  return bytes;
}

async function garbageNamesIn(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (isErrorCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  });
}

function garbageLines(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '');
}
