// Landed work as patch files: one per task, to be applied in order, and one with everything.
//
// Git writes the files itself, because their content need not be text.

import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from '../git/git.ts';
import { TASK_TRAILER } from './message.ts';

const NAME_CHARS_MAX = 60;

export type Patches = { readonly each: readonly string[]; readonly combined: string };

/** Returns the paths of the files. Existing files with these names are replaced. */
export async function writeResultPatches(
  git: Git,
  { base, merged, folder }: { readonly base: string; readonly merged: string; readonly folder: string },
): Promise<Patches> {
  await mkdir(folder, { recursive: true });
  const format = `--format=%(trailers:key=${TASK_TRAILER},valueonly,separator=%x20)`;
  const { out } = await git(['log', '-z', '--reverse', format, `${base}..${merged}`]);
  const tasks = out.split('\0').filter((task) => task !== '');

  const whole = ['--binary', '--full-index', '--no-ext-diff', '--no-textconv', '-M'];
  const mail = [
    '--numbered-files',
    '--no-signature',
    '--no-numbered',
    '--no-cover-letter',
    '--no-thread',
    '--no-attach',
  ];
  const unnamed = await mkdtemp(join(folder, '.unnamed-'));
  const each = tasks.map((task, at) =>
    join(folder, `${String(at + 1).padStart(4, '0')}-${resultPatchFileName(task)}.patch`),
  );
  try {
    await git(['format-patch', '--quiet', ...mail, ...whole, '-o', unnamed, `${base}..${merged}`]);
    for (const [at, path] of each.entries()) await rename(join(unnamed, String(at + 1)), path);
  } finally {
    await rm(unnamed, { recursive: true, force: true });
  }
  const combined = join(folder, 'combined.patch');
  await git(['diff-tree', '-p', ...whole, `--output=${combined}`, base, merged]);
  return { each, combined };
}

function resultPatchFileName(task: string): string {
  return task.replace(/[^\w.-]+/g, '-').slice(0, NAME_CHARS_MAX);
}
