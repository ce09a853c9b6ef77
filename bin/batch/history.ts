// Facts about a batch that its run stores beside its journal. A resumed run then uses the same cache and writes the
// same files as the process that began it.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Shard } from '@drover/coordinator/batch/shard';
import { writeBatchFileWhole } from '@drover/coordinator/batch/whole-file';
import { runFolder } from '@drover/coordinator/run/journal';

export type KeptBatch = {
  readonly v: 1;
  readonly name: string;
  readonly spec: string; // digest of the spec file
  readonly out: string; // the output folder
  readonly repository: string; // file name of the spec
  /** If the batch covers several repositories: the facts that their joint outputs need. */
  readonly within?: Within;
  readonly junit?: string;
  readonly summary?: string;
  readonly shard?: Shard;
  readonly total: number;
  readonly usesCache: boolean;
  readonly tasks: Readonly<Record<string, KeptTask>>;
};

export type Within = {
  readonly out: string;
  readonly names: readonly string[];
  /** Ids of the runs that share one budget; absent without a budget. */
  readonly payers?: readonly string[];
};

type KeptTask = {
  readonly group: string;
  readonly files: readonly string[];
  readonly key: string; // key in the cache
  readonly gated?: boolean; // the task has its own gates
};

const FILE = 'batch.json';

export async function storeBatch(home: string, run: string, batch: KeptBatch): Promise<void> {
  await writeBatchFileWhole(join(runFolder(home, run), FILE), `${JSON.stringify(batch)}\n`);
}

/** The stored batch of a run; undefined if the run is not a batch. */
export async function readStoredBatch(home: string, run: string): Promise<KeptBatch | undefined> {
  const path = join(runFolder(home, run), FILE);
  // Drover wrote this file atomically, so it needs no check.
  return existsSync(path) ? (JSON.parse(await readFile(path, 'utf8')) as KeptBatch) : undefined;
}
