// The file that a worker's thread runs: the source in a clone, and what was made of it beside the bundle.

import { fileURLToPath } from 'node:url';

const isSource = import.meta.url.endsWith('.ts');

export const workerEntry: string = fileURLToPath(
  new URL(isSource ? '../../packages/worker/src/entry.ts' : './worker.cjs', import.meta.url),
);
