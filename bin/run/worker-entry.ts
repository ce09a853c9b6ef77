// Path of the file that a worker thread runs: the source in a clone, a file beside the bundle otherwise.

import { fileURLToPath } from 'node:url';

const isSource = import.meta.url.endsWith('.ts');

export const workerEntry: string = fileURLToPath(
  new URL(isSource ? '../../packages/worker/src/entry.ts' : './thread.cjs', import.meta.url),
);
