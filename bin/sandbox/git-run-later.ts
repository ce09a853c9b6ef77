// Files in the user's folder from which git runs something later, because the repository says so: hook folders, parts
// of git's config that lie beside the project's files, and submodules.
//
// `git status` enters every submodule that has a `.git`, and runs what the config there names. So a submodule that is
// not checked out must not get one, and the index is read for submodules.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { DroverError } from '@drover/core/errors';
import { gitIn } from '@drover/coordinator/git/git';
import { readGitIndex } from '@drover/coordinator/git/index-file';
import { isInSandboxPath, realPathForSandbox } from '@drover/sandbox/paths';
import { listGitFolders, findGitTop } from './project-view.ts';

const SUBMODULES_MAX = 256;

type Place = { readonly root: string; readonly env: Readonly<Record<string, string>> };

/** Returns paths inside `root`, which is real. They may be missing. */
export async function listGitRunLater({ root, env }: Place): Promise<readonly string[]> {
  const top = findGitTop(root);
  if (top === undefined) return [];
  const found = [...(await listConfiguredHooks(top, env)), ...listSubmoduleFolders(top)].flatMap((path) => [
    path,
    realPathForSandbox(path),
  ]);
  const git = listGitFolders(join(top, '.git'));
  return [...new Set(found)].filter(
    (path) => isInSandboxPath(path, root) && path !== root && !git.some((folder) => isInSandboxPath(path, folder)),
  );
}

/** Hook folders, and files that git's config includes. */
async function listConfiguredHooks(top: string, env: Place['env']): Promise<readonly string[]> {
  const listed = await listConfig(top, env);
  const fromHome = (path: string) => path.replace(/^~(?=\/)/, env['HOME'] ?? homedir());
  return listed.flatMap(({ origin, name, value }) => {
    const file = resolve(top, origin);
    if (name === 'core.hookspath') return [file, resolve(top, fromHome(value))];
    if (/^include(?:if\..*)?\.path$/s.test(name)) return [file, resolve(dirname(file), fromHome(value))];
    return [file];
  });
}

type Setting = { readonly origin: string; readonly name: string; readonly value: string };

async function listConfig(top: string, env: Place['env']): Promise<readonly Setting[]> {
  const { out } = await gitIn(
    top,
    env,
  )(['config', '--list', '--show-origin', '--null']).catch((error: unknown) => {
    // There is no git, or it does not trust the folder: then git runs none of its commands either.
    if (error instanceof DroverError) return { out: '' };
    throw error;
  });
  const fields = out.split('\0');
  return fields.flatMap((field, at) => {
    const [, origin] = /^file:(.*)$/s.exec(field) ?? [];
    const [, name, value = ''] = /^([^\n]*)(?:\n(.*))?$/s.exec(fields[at + 1] ?? '') ?? [];
    return at % 2 === 0 && origin !== undefined && name !== undefined ? [{ origin, name, value }] : [];
  });
}

/** The `.git` of each submodule; where that is missing, an empty folder is meant as a whole. */
function listSubmoduleFolders(top: string): readonly string[] {
  const found: string[] = [];
  const waiting = [top];
  for (let at = waiting.pop(); at !== undefined && found.length < SUBMODULES_MAX; at = waiting.pop()) {
    for (const path of listGitlinks(at)) {
      const git = join(path, '.git');
      const isCheckedOut = statSync(git, { throwIfNoEntry: false }) !== undefined;
      if (isCheckedOut) waiting.push(path);
      found.push(isCheckedOut || countFolderEntries(path) > 0 ? git : path);
    }
  }
  return found;
}

/** The folders of submodules that the index of this repository names. */
function listGitlinks(repository: string): readonly string[] {
  const [folder] = listGitFolders(join(repository, '.git'));
  const bytes = folder === undefined ? undefined : tryGitRead(() => readFileSync(join(folder, 'index')));
  if (folder === undefined || bytes === undefined) return [];
  const isSha256 = /^\s*objectformat\s*=\s*sha256\s*$/im.test(
    tryGitRead(() => readFileSync(join(folder, 'config'), 'utf8')) ?? '',
  );
  const entriesInside = readGitIndex(bytes, isSha256 ? 'sha256' : 'sha1')?.entries ?? [];
  return entriesInside
    .filter(({ kind }) => kind === 'gitlink')
    .map(({ path }) => join(repository, Buffer.from(path, 'latin1').toString('utf8')));
}

function countFolderEntries(folder: string): number {
  return tryGitRead(() => readdirSync(folder))?.length ?? 0;
}

function tryGitRead<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    // There is none, or this user may not read it.
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}
