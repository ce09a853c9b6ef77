// A batch in one object: what summary.json holds, beside the rows of results.ndjson.

import type { Shard } from '@drover/coordinator/batch/shard';
import type { Usage } from '@drover/protocol/messages';
import type { RunEnd } from '@drover/coordinator/run/end';

export type BatchSummary = {
  readonly v: 1;
  readonly batch: string;
  readonly spec: string; // digest of the file: the same for all shards
  readonly run?: string; // absent where several were joined
  readonly model: string;
  readonly base: string; // the commit
  readonly startedAt: string;
  readonly shard?: Shard;
  readonly total: number; // tasks of all shards
  readonly outcome: RunEnd['outcome'];
  readonly exitCode: number;
  readonly reason?: string;
  readonly usage: Usage;
  readonly cost?: number;
  /** The command that takes it over begins with this path. */
  readonly combined?: string;
};
