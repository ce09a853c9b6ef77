// Writes files that do not exist yet; existing ones stay as they are.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { errorCodeOf } from '../start/settings.ts';

export type FileDraft = { readonly path: string; readonly text: string; readonly about: string };
export type Written = FileDraft & { readonly isNew: boolean };

export async function writeMissingFiles(drafts: readonly FileDraft[]): Promise<readonly Written[]> {
  const written: Written[] = [];
  for (const draft of drafts) written.push({ ...draft, isNew: await writeNewFile(draft) });
  return written;
}

async function writeNewFile({ path, text }: FileDraft): Promise<boolean> {
  try {
    await mkdir(dirname(path), { recursive: true });
    // Exclusive mode: a dangling link counts as existing, too.
    await writeFile(path, text, { flag: 'wx' });
    return true;
  } catch (error) {
    if (errorCodeOf(error) === 'EEXIST') return false;
    throw new UsageError(`${path} cannot be written (${errorCodeOf(error)}); see to its folder`, { cause: error });
  }
}
