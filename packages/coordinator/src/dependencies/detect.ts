// Finds what a project's workspaces would lack: installed dependencies of the checkout, by lockfile and ignored folder.
//
// Guarantees
//   1. Only folders that git ignores are named, so no commit takes them for the worker's work.
//   2. Nothing inside a dependency folder is looked at.
//   3. A folder belongs to the nearest lockfile of a packager that fills folders of this name; without a lockfile, to
//      the nearest manifest.

import { existsSync, lstatSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { gitOfRepository, type Repository } from '../git/repository.ts';
import { type Packager, PACKAGERS, PNP_FILE, YARN_PNP } from './packagers.ts';

const FOLDERS_MAX = 200;

const NAMES = new Set(PACKAGERS.flatMap(({ folders }) => folders));

export type Need = {
  readonly packager: Packager;
  readonly lockfile: string; // or a manifest: a path from the top of the repository
  /** Paths from the top of the repository, parents first. Empty for Plug'n'Play. */
  readonly folders: readonly string[];
};

export type Found = {
  readonly needs: readonly Need[];
  /** Packagers with a lockfile at the top of the repository. */
  readonly locked: readonly { readonly packager: Packager; readonly lockfile: string }[];
  /** Folders of dependencies without a lockfile or manifest. */
  readonly unexplained: readonly string[];
  /** Lockfiles at the top that name packages, although none is installed in the checkout. */
  readonly notInstalled: readonly { readonly packager: Packager; readonly lockfile: string }[];
};

export async function findDependencies(repository: Repository, env: Readonly<Record<string, string>>): Promise<Found> {
  const { top } = repository;
  const locked = PACKAGERS.flatMap((packager) => {
    const lockfile = packager.lockfiles.find((name) => existsSync(join(top, name)));
    return lockfile === undefined ? [] : [{ packager, lockfile }];
  });
  const needs = new Map<string, { packager: Packager; lockfile: string; folders: string[] }>();
  if (existsSync(join(top, PNP_FILE)) && existsSync(join(top, 'yarn.lock')))
    needs.set('yarn.lock', { packager: YARN_PNP, lockfile: 'yarn.lock', folders: [] });
  const unexplained: string[] = [];
  for (const folder of await ignoredDependencyFolders(repository, env)) {
    const owner = packagerOfDependencies(top, folder);
    // Without its packager, `target` may be anything.
    if (owner === undefined && basename(folder) !== 'target') unexplained.push(folder);
    if (owner === undefined) continue;
    const need = needs.get(owner.lockfile) ?? { ...owner, folders: [] };
    needs.set(owner.lockfile, need);
    if (need.packager.folders.includes(basename(folder))) need.folders.push(folder);
  }
  return { needs: [...needs.values()], locked, unexplained, notInstalled: await notInstalledDependencies(top, locked) };
}

/** Words of a lockfile that names packages. A lockfile without packages installs nothing. */
const NAMES_PACKAGES = /"node_modules\/|^packages:$|^\S+@\S+:$|"packages": \{\s+"/m;

async function notInstalledDependencies(top: string, locked: Found['locked']): Promise<Found['notInstalled']> {
  if (existsSync(join(top, 'node_modules')) || existsSync(join(top, PNP_FILE))) return [];
  const [first] = locked.filter(({ packager }) => packager.folders.includes('node_modules'));
  if (first === undefined) return [];
  const text = await readFile(join(top, first.lockfile), 'latin1');
  return NAMES_PACKAGES.test(text) ? [first] : [];
}

async function ignoredDependencyFolders(
  repository: Repository,
  env: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const list = ['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--directory'];
  const { out } = await gitOfRepository(repository, env)(list);
  return out
    .split('\0')
    .map((path) => (path.endsWith('vendor/bundle/') ? path.slice(0, -'bundle/'.length) : path))
    .filter((path) => path.endsWith('/') && NAMES.has(basename(path)))
    .map((path) => path.slice(0, -1))
    .filter((path) => lstatSync(join(repository.top, path), { throwIfNoEntry: false })?.isDirectory() === true)
    .toSorted((a, b) => a.length - b.length)
    .slice(0, FOLDERS_MAX);
}

function packagerOfDependencies(top: string, folder: string): Pick<Need, 'packager' | 'lockfile'> | undefined {
  const packagers = PACKAGERS.filter(({ folders }) => folders.includes(basename(folder)));
  const byManifest = packagers.flatMap(({ manifests, ...packager }) => {
    if (manifests === undefined) return [];
    const { files: lockfiles, command = packager.command } = manifests;
    return [{ ...packager, lockfiles, ...(command !== undefined && { command }) }];
  });
  return nearestPackager(top, folder, packagers) ?? nearestPackager(top, folder, byManifest);
}

function nearestPackager(
  top: string,
  folder: string,
  packagers: readonly Packager[],
): Pick<Need, 'packager' | 'lockfile'> | undefined {
  for (let at = dirname(folder); ; at = dirname(at)) {
    for (const packager of packagers) {
      const name = packager.lockfiles.find((each) => existsSync(join(top, at, each)));
      if (name !== undefined) return { packager, lockfile: at === '.' ? name : join(at, name) };
    }
    if (at === '.') return undefined;
  }
}

/** Commands that make a need's folders in a workspace. They run in the need's own folder. */
export function dependencyInstallCommand({ packager, lockfile, folders }: Need): string {
  const folder = basename(folders[0] ?? '');
  const command = (packager.command ?? '').replaceAll('{folder}', folder);
  const at = dirname(lockfile);
  return at === '.' ? command : `cd ${quoteDependencyFolder(at)} && ${command}`;
}

function quoteDependencyFolder(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
