// pnpm reference: writes the reference pages and JSON Schemas anew.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { referenceFiles } from './reference/files.ts';

for (const [path, text] of await referenceFiles()) {
  const file = join(import.meta.dirname, '..', path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}
