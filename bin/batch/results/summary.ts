// Content of summary.json: a batch in one object.

import type { Shard } from '@drover/coordinator/batch/shard';
import type { Usage } from '@drover/protocol/messages';
import type { RunEnd } from '@drover/coordinator/run/end';

export type BatchSummary = {
  readonly v: 1;
  readonly batch: string;
  readonly spec: string; // digest of the file: the same for all shards
  readonly run?: string; // absent if several runs were joined
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
  /** Path of the combined patch, for `git apply`. */
  readonly combined?: string;
};
