// Setup commands that prepare a workspace before a worker or a gate uses it, such as `pnpm install`.
//
// Their changes are not the worker's work. New files are kept out of its commit, ignored or not. A tracked file that
// setup changes is refused, because the change could not be told from the worker's.

import { DroverError } from '@drover/core/errors';
import type { Git } from '../git/git.ts';
import { type CommandPlace, runCommand, tailOf } from './shell-command.ts';

const NAMED_MAX = 5;
const MADE_MAX = 1_000;

/** Gives the paths it has made and that are not ignored. Throws DroverError where it fails or is stopped. */
export async function setUp(
  commands: readonly string[],
  place: CommandPlace & { readonly git: Git },
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (commands.length === 0) return [];
  for (const command of commands) {
    const { passed, output } = await runCommand(command, place, signal);
    if (!passed) throw new DroverError({ kind: 'setup.failed', command, output: tailOf(output) });
  }
  const changed = await paths(
    place.git,
    ['diff', '--no-ext-diff', '--ignore-submodules=all', '--name-only', '-z'],
    signal,
  );
  const refuse = (why: string, all: readonly string[]): never => {
    const output = `${why}: ${all.slice(0, NAMED_MAX).join(', ')}${all.length > NAMED_MAX ? ', …' : ''}`;
    throw new DroverError({ kind: 'setup.failed', command: commands.join(' && '), output });
  };
  if (changed.length > 0)
    refuse("it changes files of the repository, which would be taken for the worker's work", changed);
  const made = await paths(place.git, ['ls-files', '-z', '--others', '--exclude-standard'], signal);
  if (made.length > MADE_MAX)
    refuse(`it makes ${made.length} files that git does not ignore; have it ignore them`, made);
  return made;
}

async function paths(git: Git, args: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
  const { out } = await git(args, { signal });
  return out.split('\0').filter((path) => path !== '');
}
