// Decides which installed dependencies of the checkout every workspace gets, before anything is spent.
//
// Commands that the user configured, or lines of .drover/include, decide alone. Otherwise drover brings the folders of
// the checkout if the user agreed: with --setup auto, with --yes, or at a terminal, where the plan is approved later.

import { findDependencies, type FoundDependencies } from '@drover/coordinator/dependencies/detect';
import type { Repository } from '@drover/coordinator/git/repository';
import { readInclude } from '@drover/coordinator/slots/include';
import { UsageError } from '@drover/core/errors';
import { gitEnvironment } from '@drover/core/tools/process/environment';
import { complain, type Io } from '../io.ts';

const AUTO = 'auto';
const NONE = 'none';
const NAMED_MAX = 3;

/** The commands among the values of --setup and of the config. */
export function setupCommands(setup: readonly string[]): readonly string[] {
  return setup.filter((command) => command !== AUTO && command !== NONE);
}

type Wish = { readonly setup: readonly string[]; readonly yes: boolean; readonly mayRefuse: boolean };

/** Paths of the folders to bring. Throws UsageError if the user must choose and there is no terminal to ask on. */
export async function chooseDependencies(wish: Wish, repository: Repository, io: Io): Promise<readonly string[]> {
  const { setup, yes, mayRefuse } = wish;
  if (setup.includes(NONE) || setupCommands(setup).length > 0) return [];
  const found = await findDependencies(repository, gitEnvironment(io.env));
  if (found === undefined) return [];
  const lines = await readInclude(repository.top);
  const folders = found.folders.filter((path) => !lines.some(({ pattern }) => pattern === path));
  if (folders.length === 0) return [];
  const isAgreed = yes || setup.includes(AUTO) || (io.stdin.isTTY === true && io.stderr.isTTY === true);
  if (!isAgreed && mayRefuse) throw new UsageError(question(found));
  if (isAgreed && mayRefuse) await complain(io, `each workspace gets your ${named(folders)}, read-only`);
  return isAgreed ? folders : [];
}

function question({ lockfile, folders }: FoundDependencies): string {
  return [
    `workspaces would lack ${named(folders)}, which ${lockfile} installs.`,
    'Choose: --setup auto (each workspace gets yours, read-only), --setup "<command>" (runs in each workspace),',
    'or --setup none',
  ].join(' ');
}

function named(folders: readonly string[]): string {
  const more = folders.length - NAMED_MAX;
  return `${folders.slice(0, NAMED_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
