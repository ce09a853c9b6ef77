// A task: one piece of a plan, and everything that is needed to work on it, as data. A TaskSpec goes to
// another thread, and could go to another machine; what comes back is a TaskOutcome, never an exception.

import type { TaskMode } from '@drover/protocol/plan';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import type { Input } from '../session/execution.ts';
import type { Limits } from '@drover/protocol/limits';
import type { Past } from '../journal/history.ts';
import type { Price } from '../model/catalog.ts';
import type { Message, ToolDefinition } from '@drover/protocol/messages';
import type { RetryPolicy } from '../model/retry.ts';
import type { Policy } from '../permission/policy.ts';
import type { TaskLink } from './link.ts';

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

/** A pool of threads is one; the worker's own function in this thread is another. */
export type RunTask = (spec: TaskSpec, link: TaskLink, signal: AbortSignal) => Promise<TaskOutcome>;
