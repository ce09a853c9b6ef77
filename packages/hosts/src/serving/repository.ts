// The cache of a repository on a host: the objects that coordinators have sent, and a folder for files of the host.
//
//   <home>/hosts/<name>/project/    a checkout without files: what its `.drover/include` names comes into workspaces
//                                   of this repository on this host

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { bestEffort } from '@drover/core/promises';
import { gitAt, gitIn, type GitPlace } from '@drover/coordinator/git/git';
import type { Repository } from '@drover/coordinator/git/repository';
import type { Order } from '../messages.ts';

const HAVE = 'refs/drover/have/';
const HAVE_MAX = 64;
const FETCH_MS_MAX = 600_000;

export type HostRepository = { readonly repository: Repository; readonly place: GitPlace };

type Home = { readonly home: string; readonly env: Readonly<Record<string, string>> };

export async function openHostRepository(
  { repository: name, objectFormat, base, identity }: Order,
  { home, env }: Home,
): Promise<HostRepository> {
  const top = join(home, 'hosts', name.replaceAll(/[^\w.-]+/g, '-'), 'project');
  const gitDir = join(top, '.git');
  await mkdir(top, { recursive: true });
  const place: GitPlace = { gitDir, env };
  await gitAt({ gitDir: top, env })(['init', '-q', `--object-format=${objectFormat}`, '-b', 'none', top], {
    env: { GIT_DIR: gitDir },
  });
  const repository: Repository = {
    top,
    gitDir,
    commonDir: gitDir,
    objects: join(gitDir, 'objects'),
    objectFormat,
    head: base,
    notIncluded: [],
    identity,
    filters: [],
  };
  return { repository, place };
}

/**
 * Fetches the branches of the remote with this machine's own git config and credentials. Only over https and ssh, or
 * from a folder: others could name a program to run.
 */
export async function fetchBulk({ place }: HostRepository, remote: string): Promise<void> {
  const allowed = ['https', 'ssh', 'file'].flatMap((name) => ['-c', `protocol.${name}.allow=always`]);
  const git = gitIn(place.gitDir, place.env);
  const settings = ['-c', 'protocol.allow=never', ...allowed, '-c', 'core.hooksPath=/dev/null'];
  const fetch = ['fetch', '-q', '--no-tags', '--no-write-fetch-head', '--no-auto-gc'];
  const signal = AbortSignal.timeout(FETCH_MS_MAX);
  await git([...settings, ...fetch, '--', remote, `+refs/heads/*:${HAVE}fetched/*`], { signal });
}

/** Commits whose objects are all here, newest first. */
export async function listCommitsHostHas({ place }: HostRepository): Promise<readonly string[]> {
  const { out } = await gitAt(place)([
    'for-each-ref',
    '--sort=-committerdate',
    `--count=${HAVE_MAX}`,
    '--format=%(objectname)',
    HAVE,
  ]);
  return out.split('\n').filter((line) => line !== '');
}

/** Keeps the commits, so that later packs can leave out what they hold. */
export async function noteCommitHostHas({ place }: HostRepository, commits: readonly string[]): Promise<void> {
  // Only a hint: without it, a later pack holds more.
  for (const commit of commits) await bestEffort(gitAt(place)(['update-ref', `${HAVE}${commit}`, commit]));
}
