// Setup commands that prepare a workspace before a worker or a gate uses it, such as `pnpm install`.
//
// Their changes are not the worker's work. New files are kept out of its commit, ignored or not. A tracked file that
// setup changes is refused, because the change could not be told from the worker's.
//
// The output of setup stays in a slot for later tasks, until a lockfile, a manifest or a command changes.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DroverError } from '@drover/core/errors';
import { MANIFESTS } from '../dependencies/packagers.ts';
import type { Git } from '../git/git.ts';
import { type CommandPlace, runSlotCommand, tailOfSlotOutput } from './shell-command.ts';

const NAMED_MAX = 5;
const MADE_MAX = 1_000;

/** Returns the paths that setup made and git does not ignore. Throws DroverError if setup fails or is stopped. */
export async function setUpSlot(
  commands: readonly string[],
  place: CommandPlace & { readonly git: Git },
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (commands.length === 0) return [];
  for (const command of commands) {
    const { passed, output } = await runSlotCommand(command, place, signal);
    if (!passed) throw new DroverError({ kind: 'setup.failed', command, output: tailOfSlotOutput(output) });
  }
  const changed = await slotSetupPaths(
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
  const made = await slotSetupPaths(place.git, ['ls-files', '-z', '--others', '--exclude-standard'], signal);
  if (made.length > MADE_MAX)
    refuse(`it makes ${made.length} files that git does not ignore; have it ignore them`, made);
  return made;
}

/** Files in HOME that installations leave and no later command needs. */
const CACHES =
  /^(?:\.npm|\.cache\/(?:pip|uv|pypoetry|yarn|node|node-gyp|pnpm|composer|bundle)|\.local\/(?:share|state)\/pnpm)\//;

/**
 * True if setup left nothing in the private HOME that later commands could need: the next task begins with an empty
 * one.
 */
export function isSlotHomeUnused(box: string): boolean {
  const home = join(box, 'home');
  if (!existsSync(home)) return true;
  return readdirSync(home, { withFileTypes: true, recursive: true }).every(
    (entry) => entry.isDirectory() || CACHES.test(`${join(entry.parentPath, entry.name).slice(home.length + 1)}`),
  );
}

export type PreparationFacts = {
  readonly commands: readonly string[];
  readonly copy: string | undefined; // of linked dependencies: its identity
  readonly path: string | undefined; // the PATH of the commands
};

/**
 * A key of everything that decides the output of setup on this commit. Without manifests, the key is the commit itself.
 */
export async function slotPreparationKey(facts: PreparationFacts, base: string, git: Git): Promise<string> {
  const { out } = await git(['ls-tree', '-r', '-z', '--full-tree', base]);
  const files = out.split('\0').filter((line) => MANIFESTS.has(basename(line.slice(line.indexOf('\t') + 1))));
  const parts = [facts.commands, facts.copy ?? '', facts.path ?? '', files.length === 0 ? out : files];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

async function slotSetupPaths(git: Git, args: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
  const { out } = await git(args, { signal });
  return out.split('\0').filter((path) => path !== '');
}
