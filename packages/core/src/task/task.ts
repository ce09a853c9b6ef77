// A task: one piece of a plan, and everything that is needed to work on it, as data. A TaskSpec goes to
// another thread, and could go to another machine; what comes back is a TaskOutcome, never an exception.

import type { SandboxPolicy } from '@drover/sandbox/policy';
import type { Input } from '../agent/session.ts';
import type { Limits } from '../agent/limits.ts';
import type { Failure } from '../failure.ts';
import type { Past } from '../journal/history.ts';
import type { Price } from '../model/catalog.ts';
import type { Message, ToolDefinition, Usage } from '../model/protocol.ts';
import type { RetryPolicy } from '../model/retry.ts';
import type { Policy } from '../permission/policy.ts';
import type { TaskLink } from './link.ts';

/** A `read` task changes nothing and needs no merge. */
export type TaskMode = 'write' | 'read';

export type PlannedTask = {
  readonly id: string;
  readonly title: string;
  readonly prompt: string;
  readonly dependsOn: readonly string[];
  readonly files: readonly string[]; // paths or globs it means to change; empty where it doesn't say
  readonly mode: TaskMode;
  /** Commands that must pass in its workspace before its work may land; absent where only the merged tree is tested. */
  readonly gates?: readonly string[];
};

/** How much of the coordinator's conversation a worker starts with. */
export type Seeding = 'full' | 'brief' | 'none';

export type SeedSummary = {
  readonly seeding: Seeding;
  readonly messages: number;
  readonly tokens: number; // estimated
  readonly digest: string; // of system prompt, tools and messages: the same for all that share them
};

export type ModelSpec = {
  readonly name: string;
  readonly contextTokens: number;
  readonly outputTokensMax: number;
  readonly charsPerToken?: number;
  readonly price?: Price;
};

export type TaskSpec = {
  readonly run: string;
  readonly task: string;
  readonly attempt: number; // from 1
  readonly worker: number; // from 1
  readonly mode: TaskMode;
  readonly model: ModelSpec;
  readonly system: string; // the coordinator's, to the byte
  readonly tools: readonly ToolDefinition[]; // as the coordinator declares them, likewise
  readonly seed: readonly Message[];
  readonly begin: Input;
  /** What this attempt went through before a crash; its messages begin with the seed. */
  readonly past?: Past;
  readonly workspace: string;
  /** Contains its commands; absent where they run in the open. */
  readonly sandbox?: SandboxPolicy;
  readonly env: Readonly<Record<string, string>>; // for child processes
  readonly ignore: readonly string[]; // what searches leave out
  readonly outputFolder: string;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly policy: Pick<Policy, 'rules' | 'yes' | 'contained'>;
  /** Requests with the same key share a cached beginning: the run's. */
  readonly cacheKey: string;
};

export type TaskOutcome = {
  readonly status: 'finished' | 'failed' | 'cancelled';
  readonly failure?: Failure;
  /** The worker's own words: what it submitted, or else the last thing it said. */
  readonly summary: string;
  readonly usage: Usage;
  readonly cost?: number;
  /** Calls that were not allowed, where the worker stopped for want of them. */
  readonly refused: readonly string[];
};

/** A pool of threads is one; the worker's own function in this thread is another. */
export type RunTask = (spec: TaskSpec, link: TaskLink, signal: AbortSignal) => Promise<TaskOutcome>;
