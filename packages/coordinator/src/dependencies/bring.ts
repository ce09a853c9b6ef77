// Brings the installed dependencies of a checkout into a workspace.
//
// Guarantees
//   1. In a sandbox that can mount, commands see the checkout's folder read-only. Only `.cache` and `.vite` can be
//      written, in a private folder of the attempt.
//   2. Elsewhere a workspace gets hard links to a private copy, whose files are read-only. The copy is made once for
//      each state of the lockfile.
//   3. `auditDependencyCopy` finds files of the private copy that were changed, added or removed since it was made.
//   4. Never a symlink to the checkout: links between the packages of a monorepo lead to the worker's own code.
//
// Crash: a copy gets its name once it is complete, so an interrupted one is made again.

import { createHash } from 'node:crypto';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import { chmod, cp, lstat, mkdir, opendir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BroughtFolder } from '@drover/sandbox/policy';
import { isErrorCode } from '../git/removal.ts';

const CACHES = ['.cache', '.vite'];
const WRITE_BITS = 0o222;
const FOLDERS_A_TURN = 50;
const STATE_SUFFIX = '.json';
/** Packagers note what they installed; a change of these files means another state. */
const STATES = [
  'package.json',
  'package-lock.json',
  'npm-shrinkwrap.json',
  'pnpm-lock.yaml',
  'yarn.lock',
  'bun.lock',
  'bun.lockb',
];
const INSTALLED = ['.package-lock.json', '.yarn-integrity', '.modules.yaml'];

export type Dependencies = {
  /** Paths from the top of the repository. */
  readonly folders: readonly string[];
  /** `mount`: the sandbox shows them. `link`: the workspace gets hard links to a private copy. */
  readonly how: 'mount' | 'link';
};

/** The mounts of a workspace. Makes the folders that they need; skips a folder whose package the commit lacks. */
export function mountDependencies(folders: readonly string[], place: MountPlace): readonly BroughtFolder[] {
  const { top, tree, box } = place;
  return folders.flatMap((path, n) => {
    const [from, at] = [join(top, path), join(tree, path)];
    if (!isDependencyFolder(from) || !isOwnDependencyFolder(dirname(at))) return [];
    const found = lstatSync(at, { throwIfNoEntry: false });
    if (found === undefined) mkdirSync(at);
    else if (!found.isDirectory()) return [];
    const caches = CACHES.filter((name) => isDependencyMountPoint(join(from, name))).map((name) => {
      const own = join(box, 'caches', String(n), name);
      mkdirSync(own, { recursive: true });
      return { name, from: own };
    });
    return [{ from: realpathSync(from), at, caches }];
  });
}

type MountPlace = { readonly top: string; readonly tree: string; readonly box: string };

/** A mount needs a folder to stand on, so an empty one is made in the checkout's ignored folder. */
function isDependencyMountPoint(path: string): boolean {
  try {
    mkdirSync(path, { recursive: true });
    return isDependencyFolder(path);
  } catch (error) {
    if (isErrorCode(error, 'EACCES', 'EROFS', 'EEXIST', 'ENOTDIR', 'EPERM')) return false;
    throw error;
  }
}

function isDependencyFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** A commit may have a link where the user has a folder, and it could lead anywhere. */
function isOwnDependencyFolder(path: string): boolean {
  return isDependencyFolder(path) && realpathSync(path) === path;
}

/** Copies the folders once for each state of the lockfile; returns the folder with the copies. */
export async function copyDependencies(folders: readonly string[], top: string, store: string): Promise<string> {
  const copies = join(store, 'dependencies');
  const place = join(copies, dependencyStateKey(folders, top));
  if (existsSync(place)) return place;
  const draft = `${place}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  for (const path of folders) {
    const to = join(draft, path);
    await mkdir(dirname(to), { recursive: true });
    await cp(join(top, path), to, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (from) => !isDependencyCache(from),
    });
    await protectDependencies(to);
  }
  await writeFile(`${place}${STATE_SUFFIX}`, JSON.stringify(await dependencyFilesState(draft)));
  await rename(draft, place).catch(async (error: unknown) => {
    // Another run was faster.
    if (!isErrorCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    await rm(draft, { recursive: true, force: true });
  });
  return place;
}

/** Paths of the copy that are not as drover made them. A copy without a record has none. */
export async function auditDependencyCopy(copy: string): Promise<readonly string[]> {
  const record = await readFile(`${copy}${STATE_SUFFIX}`, 'utf8').catch((error: unknown) => {
    if (isErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (record === undefined) return [];
  const before = new Map(Object.entries(JSON.parse(record) as Readonly<Record<string, string>>));
  const now = new Map(Object.entries(await dependencyFilesState(copy)));
  return [...new Set([...before.keys(), ...now.keys()])].filter((path) => before.get(path) !== now.get(path));
}

/** Removes a copy that was changed, so that the next run makes another. Workspaces keep their links. */
export async function removeDependencyCopy(copy: string): Promise<void> {
  await rm(copy, { recursive: true, force: true });
  await rm(`${copy}${STATE_SUFFIX}`, { force: true });
}

/** By path: inode, mode, size and time of change of each file. Links change the ctime, so it can't be compared. */
async function dependencyFilesState(folder: string): Promise<Readonly<Record<string, string>>> {
  const state: Record<string, string> = {};
  const walk = async (at: string): Promise<void> => {
    for await (const entry of await opendir(join(folder, at))) {
      const path = join(at, entry.name);
      if (entry.isDirectory()) await walk(path);
      else {
        const { ino, mode, size, mtimeMs } = await lstat(join(folder, path));
        state[path] = `${ino} ${mode} ${size} ${mtimeMs}`;
      }
    }
  };
  await walk('');
  return state;
}

function isDependencyCache(path: string): boolean {
  return CACHES.some((name) => path.endsWith(`/node_modules/${name}`));
}

function dependencyStateKey(folders: readonly string[], top: string): string {
  const hash = createHash('sha256');
  const beside = new Set(['.', ...folders.map((path) => dirname(path))]);
  const files = [
    ...[...beside].flatMap((at) => STATES.map((name) => join(at, name))),
    ...folders.flatMap((path) => INSTALLED.map((name) => join(path, name))),
  ];
  for (const file of files) {
    const path = join(top, file);
    hash.update(`${file}\0`).update(existsSync(path) ? readFileSync(path) : '');
  }
  return hash.update(folders.join('\0')).digest('hex').slice(0, 16);
}

async function protectDependencies(folder: string): Promise<void> {
  for await (const entry of await opendir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await protectDependencies(path);
    else if (entry.isFile()) await chmod(path, (await lstat(path)).mode & ~WRITE_BITS);
  }
}

/** Fills the workspace with hard links to the copy; skips a folder whose package the commit lacks. */
export async function hardLinkDependencies(copy: string, folders: readonly string[], tree: string): Promise<void> {
  for (const path of folders) {
    const [from, to] = [join(copy, path), join(tree, path)];
    if (isDependencyFolder(from) && isOwnDependencyFolder(dirname(to)) && !existsSync(to))
      await hardLinkDependencyFolder(from, to);
  }
}

// One call after another in this thread takes a third of the time of promises: each link is a few microseconds.
async function hardLinkDependencyFolder(from: string, to: string): Promise<void> {
  const waiting: (readonly [from: string, to: string])[] = [[from, to]];
  for (let next = waiting.pop(), n = 0; next !== undefined; next = waiting.pop(), n++) {
    if (n % FOLDERS_A_TURN === 0) await nextTurn();
    const [source, target] = next;
    mkdirSync(target);
    for (const entry of readdirSync(source, { withFileTypes: true })) {
      const [there, here] = [`${source}/${entry.name}`, `${target}/${entry.name}`];
      if (entry.isDirectory()) waiting.push([there, here]);
      else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(there), here);
      else if (entry.isFile()) linkSync(there, here);
    }
  }
}
