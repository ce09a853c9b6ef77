// Writes a file atomically, also if other processes write it at the same time.

import { randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Creates its folder if it is missing. */
export async function writeBatchFileWhole(
  path: string,
  text: string,
  encoding: 'utf8' | 'latin1' = 'utf8',
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.${randomUUID()}.draft`;
  await writeFile(draft, text, encoding);
  await rename(draft, path);
}
