// The git folder a worker sees in its workspace: a small repository of its own, on a branch of its own.
//
// It is made afresh for every task by writing files, and borrows the objects of the user's repository and
// of the store. It has no remote. Whatever a worker does to it ends there: drover never runs git with it.
//
// Written without waiting in between: on a busy machine a dozen waits for small files cost more than the files.

import { copyFileSync, existsSync, mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DroverError } from '@drover/core/failure';
import { quotedPath } from '../git.ts';
import type { Repository } from '../repository.ts';
import { configText } from './store.ts';

export type WorkerGit = {
  readonly tree: string;
  readonly index: string; // drover's own, which is copied
  readonly storeGit: string;
  readonly repository: Repository;
  readonly branch: string;
  readonly base: string;
  readonly exclude: string; // what is ignored besides what the repository says
};

export function writeWorkerGit(given: WorkerGit): void {
  const { tree, index, storeGit, repository, branch, base, exclude } = given;
  const folder = join(tree, '.git');
  const { objectFormat, identity } = repository;
  const shallow = join(storeGit, 'shallow');
  // No more folders than git needs to take it for a repository: making and removing them is what costs most here.
  for (const path of ['', 'refs', 'info', 'objects', join('objects', 'info')]) mkdirSync(join(folder, path));
  const write = (path: string, text: string) => writeFileSync(join(folder, path), text);
  write('HEAD', `ref: refs/heads/${checkedBranch(branch)}\n`);
  write('packed-refs', `# pack-refs with: peeled fully-peeled sorted \n${base} refs/heads/${branch}\n`);
  write('config', configText({ objectFormat, isBare: false, identity }));
  // The store borrows all that the user's repository has, and git follows that.
  write(join('objects', 'info', 'alternates'), `${quotedPath(join(storeGit, 'objects'))}\n`);
  write(join('info', 'exclude'), exclude);
  if (existsSync(shallow)) copyFileSync(shallow, join(folder, 'shallow'));
  copyIndex(index, join(folder, 'index'));
}

/**
 * A file written in the same second as the index may have been changed since without looking so; git
 * therefore reads such files, and knows them by the index's own time. So the copy must not look younger.
 */
export function copyIndex(from: string, to: string): void {
  const second = Math.floor(statSync(from).mtimeMs / 1_000);
  copyFileSync(from, to);
  utimesSync(to, second, second);
}

// It becomes a path here, before git could refuse it.
function checkedBranch(branch: string): string {
  const isGood = branch.split('/').every((part) => /^\w[\w.-]*$/.test(part) && !/\.\.|\.lock$|\.$/.test(part));
  if (isGood) return branch;
  const message = `${JSON.stringify(branch)} can't be the name of a branch`;
  throw new DroverError({ kind: 'git.failed', args: ['check-ref-format'], message });
}
