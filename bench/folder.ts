// Temporary folders for measurements, all removed at the end: for a minute after many files were removed, some file
// systems create new ones far more slowly.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const given = process.env['DROVER_BENCH_FOLDER'];
export const root = given ?? mkdtempSync(join(tmpdir(), 'drover-bench-'));
if (given === undefined) process.once('exit', () => rmSync(root, { recursive: true, force: true }));

export function newFolder(): string {
  return mkdtempSync(join(root, 'one-'));
}
