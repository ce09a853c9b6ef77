// The git folder a worker sees in its workspace: a small repository of its own, on a branch of its own.
//
// It is made afresh for every task by writing files, and borrows the objects of the user's repository and
// of the store. It has no remote. Whatever a worker does to it ends there: drover never runs git with it.

import { copyFile, mkdir, stat, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DroverError } from '@drover/core/failure';
import { quotedPath } from '../git.ts';
import type { Repository } from '../repository.ts';
import { configText, copyShallow } from './store.ts';

export type WorkerGit = {
  readonly tree: string;
  readonly index: string; // drover's own, which is copied
  readonly storeGit: string;
  readonly repository: Repository;
  readonly branch: string;
  readonly base: string;
  readonly exclude: string; // what is ignored besides what the repository says
};

export async function writeWorkerGit(given: WorkerGit): Promise<void> {
  const { tree, index, storeGit, repository, branch, base, exclude } = given;
  const folder = join(tree, '.git');
  const ref = join(folder, 'refs', 'heads', checkedBranch(branch));
  const { objectFormat, identity } = repository;
  await mkdir(dirname(ref), { recursive: true });
  await Promise.all(
    ['hooks', 'info', join('objects', 'info')].map((path) => mkdir(join(folder, path), { recursive: true })),
  );
  await Promise.all([
    writeFile(join(folder, 'HEAD'), `ref: refs/heads/${branch}\n`),
    writeFile(ref, `${base}\n`),
    writeFile(join(folder, 'config'), configText({ objectFormat, isBare: false, identity })),
    // The store borrows all that the user's repository has, and git follows that.
    writeFile(join(folder, 'objects', 'info', 'alternates'), `${quotedPath(join(storeGit, 'objects'))}\n`),
    writeFile(join(folder, 'info', 'exclude'), exclude),
    copyShallow(storeGit, folder),
    copyIndex(index, join(folder, 'index')),
  ]);
}

/**
 * A file written in the same second as the index may have been changed since without looking so; git
 * therefore reads such files, and knows them by the index's own time. So the copy must not look younger.
 */
export async function copyIndex(from: string, to: string): Promise<void> {
  const { mtimeMs } = await stat(from);
  await copyFile(from, to);
  const second = Math.floor(mtimeMs / 1_000);
  await utimes(to, second, second);
}

// It becomes a path here, before git could refuse it.
function checkedBranch(branch: string): string {
  const isGood = branch.split('/').every((part) => /^\w[\w.-]*$/.test(part) && !/\.\.|\.lock$|\.$/.test(part));
  if (isGood) return branch;
  const message = `${JSON.stringify(branch)} can't be the name of a branch`;
  throw new DroverError({ kind: 'git.failed', args: ['check-ref-format'], message });
}
