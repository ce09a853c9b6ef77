// Files that the user names on the command line, such as a batch spec. In the repository that is worked on they belong
// to the project, and a cloned project is a stranger's: commands in them need an approval.

import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { statIfThere } from '@drover/core/files/lookup';
import { trustApprovalOf, type ProjectEntry, whyNotTrusted } from '@drover/trust/approvals';
import { projectPlaceForTrust } from '@drover/trust/place';
import { printError, type Io } from '../io.ts';
import { stateFolder, type TrustOptions } from '../start/settings.ts';

/** The file as it is approved: at its real place in its repository. */
export async function namedFileTrustEntry(path: string, sha256: string): Promise<ProjectEntry> {
  const real = await realpath(path);
  const { repository } = await projectPlaceForTrust(dirname(real));
  return { repository, file: relative(repository, join(dirname(real), basename(real))), sha256 };
}

export type NamedCommands = {
  readonly path: string; // absolute
  readonly sha256: string;
  /** As the user named it. */
  readonly file: string;
  /** The keys that name commands. */
  readonly keys: readonly string[];
  /** The folder to work in. */
  readonly cwd: string;
};

/** Throws UsageError for a file of this project that names commands and is not approved. */
export async function checkNamedFileTrust(
  { path, sha256, file, keys, cwd }: NamedCommands,
  { trustsAll }: TrustOptions,
  io: Io,
): Promise<void> {
  if (keys.length === 0) return;
  const entry = await namedFileTrustEntry(path, sha256);
  const here = await Promise.all([io.cwd, cwd].map(projectPlaceForTrust));
  const isOfProject = here.some(({ repository }) => repository === entry.repository);
  if (!isOfProject || (await statIfThere(join(entry.repository, '.git'))) === undefined) return;
  const approval = await trustApprovalOf(stateFolder(io), entry);
  if (approval === 'approved') return;
  if (trustsAll) return printError(io, `--trust-project: ${file} counts as approved`);
  const why = whyNotTrusted(approval);
  throw new UsageError(
    `${file} belongs to this project and names commands (${keys.join(', ')}), so it needs your approval${why === undefined ? '' : ` again: ${why}`}; look at it with: drover trust ${file}, or pass --trust-project`,
  );
}
