// Finds the installed dependencies of a checkout that a workspace would lack.
//
// Guarantees
//   1. Only folders that git ignores are named, so no commit takes them for the worker's work.
//   2. Nothing inside a dependency folder is looked at.

import { existsSync, lstatSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gitOf, type Repository } from '../git/repository.ts';

/** Managers whose `node_modules` works at another path: its links are relative. */
const LOCKFILES: readonly (readonly [file: string, manager: string])[] = [
  ['package-lock.json', 'npm'],
  ['npm-shrinkwrap.json', 'npm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
];
const FOLDER = 'node_modules';
const FOLDERS_MAX = 200;

export type FoundDependencies = {
  readonly manager: string;
  readonly lockfile: string;
  /** Paths from the top of the repository, parents first. */
  readonly folders: readonly string[];
};

/** Undefined if the project has no lockfile of such a manager, or nothing is installed. */
export async function findDependencies(
  repository: Repository,
  env: Readonly<Record<string, string>>,
): Promise<FoundDependencies | undefined> {
  const { top } = repository;
  const [lockfile, manager] = LOCKFILES.find(([file]) => existsSync(join(top, file))) ?? [];
  if (lockfile === undefined || manager === undefined || existsSync(join(top, '.pnp.cjs'))) return undefined;
  const list = ['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--directory'];
  const { out } = await gitOf(repository, env)(list);
  const folders = out
    .split('\0')
    .filter((path) => path.endsWith('/') && basename(path) === FOLDER)
    .map((path) => path.slice(0, -1))
    .filter((path) => lstatSync(join(top, path), { throwIfNoEntry: false })?.isDirectory() === true)
    .toSorted((a, b) => a.length - b.length)
    .slice(0, FOLDERS_MAX);
  return folders.length === 0 ? undefined : { manager, lockfile, folders };
}
