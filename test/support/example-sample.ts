// The sample repository of the batch example.

import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Result } from '@drover/coordinator/batch/results';
import { runSync } from './process/run-sync.ts';
import { temporaryFolder } from './workspace.ts';

export const EXAMPLES = resolve('examples');
export const MODEL = join(EXAMPLES, 'no-console', 'model.mjs');

export async function sample(files: number): Promise<{ readonly folder: string; readonly shop: string }> {
  const folder = await temporaryFolder();
  const shop = join(folder, 'shop');
  runSync(process.execPath, [join(EXAMPLES, 'no-console', 'make-sample.mjs'), shop, String(files)], { cwd: EXAMPLES });
  return { folder, shop };
}

export async function resultsIn(out: string): Promise<readonly Result[]> {
  const rows = (await readFile(join(out, 'results.ndjson'), 'utf8')).trim().split('\n');
  return rows.map((line) => JSON.parse(line) as Result);
}
