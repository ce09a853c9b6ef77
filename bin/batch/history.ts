// What a run has to know of the batch it carries out, kept beside its journal: so that whoever goes on with it
// after a crash finds the same cache and writes the same files as the process that began it.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Shard } from '@drover/coordinator/batch/shard';
import { writeFileWhole } from '@drover/coordinator/batch/whole-file';
import { runFolder } from '@drover/coordinator/run/journal';

export type KeptBatch = {
  readonly v: 1;
  readonly name: string;
  readonly spec: string; // digest of the file
  readonly out: string; // a folder
  readonly repository: string; // its name
  /** Where it is one repository of several: what the outputs of all are made of. */
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
  /** The ids of the runs that spend from one budget; absent where there is none. */
  readonly payers?: readonly string[];
};

type KeptTask = {
  readonly group: string;
  readonly files: readonly string[];
  readonly key: string; // in the cache
  readonly gated?: boolean; // it has gates of its own
};

const FILE = 'batch.json';

export async function keepBatch(home: string, run: string, batch: KeptBatch): Promise<void> {
  await writeFileWhole(join(runFolder(home, run), FILE), `${JSON.stringify(batch)}\n`);
}

/** Undefined for a run that is no batch. */
export async function keptBatch(home: string, run: string): Promise<KeptBatch | undefined> {
  const path = join(runFolder(home, run), FILE);
  // We have written it ourselves, whole.
  return existsSync(path) ? (JSON.parse(await readFile(path, 'utf8')) as KeptBatch) : undefined;
}
