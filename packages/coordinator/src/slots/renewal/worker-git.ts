// The git folder that a worker sees in its workspace: a small repository with its own branch.
//
// It borrows the objects of the user's repository and of the store, and has no remote. Drover never runs git with it,
// so changes of a worker have no effect outside.
//
// Every task gets it as new. If it holds only drover's files, their content is restored. If anything else is there,
// such as a hook, an object or a lock, the whole folder is replaced. Creating folders is the largest cost here.
//
// Files are written synchronously: on a busy machine a dozen waits cost more than the small files.

import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { DroverError } from '@drover/core/errors';
import { quotedGitPath } from '../../git/git.ts';
import type { Repository } from '../../git/repository.ts';
import { modeOfRenewedFile, writeRenewedFile } from './own-file.ts';
import { storeConfigText } from '../../store/store.ts';

const PERMISSIONS = 0o7777;

export const WORKER_GIT = '.git';

// The folders without which git accepts no repository.
const FOLDERS = ['', 'refs', 'info', 'objects', 'objects/info'];
const FILES = ['HEAD', 'packed-refs', 'config', 'objects/info/alternates', 'info/exclude', 'shallow', 'index'];

export type WorkerGit = {
  readonly tree: string;
  readonly index: string; // drover's own index, which is copied
  readonly storeGit: string;
  readonly repository: Repository;
  readonly branch: string;
  readonly base: string;
  readonly exclude: string; // paths ignored in addition to the repository's own rules
  readonly mode: number; // of the folders that drover makes
};

/**
 * Returns true if a git folder has exactly the folders and files that drover makes. Ignores the content of the files.
 */
export function isRenewableWorkerGit(folder: string, mode: number): boolean {
  return FOLDERS.every((path) => {
    const place = join(folder, path);
    const found = lstatSync(place, { throwIfNoEntry: false });
    if (found?.isDirectory() !== true || (found.mode & PERMISSIONS) !== mode) return false;
    return readdirSync(place, { withFileTypes: true }).every((entry) =>
      (entry.isDirectory() ? FOLDERS : FILES).includes(path === '' ? entry.name : `${path}/${entry.name}`),
    );
  });
}

/** An existing folder must satisfy `isRenewableWorkerGit`. */
export function renewWorkerGit(given: WorkerGit): void {
  const { tree, index, storeGit, repository, branch, base, exclude, mode } = given;
  const folder = join(tree, WORKER_GIT);
  const { objectFormat, identity } = repository;
  const shallow = join(storeGit, 'shallow');
  const head = `ref: refs/heads/${checkRenewedBranch(branch)}\n`;
  if (!existsSync(folder)) for (const path of FOLDERS) mkdirSync(join(folder, path));
  const write = (path: string, content: string | Buffer) =>
    writeRenewedFile(join(folder, path), content, modeOfRenewedFile(mode));
  write('HEAD', head);
  write('packed-refs', `# pack-refs with: peeled fully-peeled sorted \n${base} refs/heads/${branch}\n`);
  write('config', storeConfigText({ objectFormat, isBare: false, identity }));
  // The store borrows all objects of the user's repository, and git follows that.
  write(join('objects', 'info', 'alternates'), `${quotedGitPath(join(storeGit, 'objects'))}\n`);
  write(join('info', 'exclude'), exclude);
  if (existsSync(shallow)) write('shallow', readFileSync(shallow));
  else rmSync(join(folder, 'shallow'), { force: true });
  write('index', readFileSync(index));
  makeRenewedFileAsOld(index, join(folder, 'index'));
}

export function copyIndexToRenewedSlot(from: string, to: string): void {
  copyFileSync(from, to);
  makeRenewedFileAsOld(from, to);
}

/**
 * A file written in the same second as the index may have changed since without a visible sign, so git reads such
 * files, judged by the index's own time. A copy must therefore not look younger.
 */
function makeRenewedFileAsOld(index: string, copy: string): void {
  const second = Math.floor(statSync(index).mtimeMs / 1_000);
  utimesSync(copy, second, second);
}

// The name becomes a path here, before git could refuse it.
function checkRenewedBranch(branch: string): string {
  const isGood = branch.split('/').every((part) => /^\w[\w.-]*$/.test(part) && !/\.\.|\.lock$|\.$/.test(part));
  if (isGood) return branch;
  const message = `${JSON.stringify(branch)} can't be the name of a branch`;
  throw new DroverError({ kind: 'workspace.failed', message });
}
