// A task as data: one piece of a plan, with everything that a worker needs. A TaskSpec travels to another thread,
// and could travel to another machine. The worker returns a TaskOutcome and never throws.

import type { TaskMode } from '@drover/protocol/plan';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import type { Input } from '../session/execution.ts';
import type { Limits } from '@drover/protocol/limits';
import type { Past } from '../journal/history.ts';
import type { Price } from '../model/catalog.ts';
import type { Provider } from '../model/provider.ts';
import type { Message, ToolDefinition } from '@drover/protocol/messages';
import type { RetryPolicy } from '../model/retry.ts';
import type { Policy } from '../permission/policy.ts';
import type { ServedTool } from '../tools/served/served.ts';
import type { Hook } from '../hooks/hook.ts';
import type { Skill } from '../skills/skill.ts';
import type { TaskLink } from './link.ts';

/** A model as data. The run asks its provider; a task needs only the limits of its wire format. */
export type ModelSpec = {
  readonly provider: Pick<Provider, 'id' | 'limits'>;
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
  /** Models to ask, in order, when the first one is unavailable. */
  readonly fallbacks?: readonly ModelSpec[];
  readonly system: string; // the coordinator's system prompt, byte for byte
  readonly tools: readonly ToolDefinition[]; // the coordinator's tool definitions, byte for byte
  /** Tools of servers that the run is connected to. Their definitions are in `tools`, unless they are deferred. */
  readonly served: readonly ServedTool[];
  readonly seed: readonly Message[];
  /** Skills that the worker can load; `system` lists them. */
  readonly skills?: readonly Skill[];
  /** Hooks of its calls. */
  readonly hooks?: readonly Hook[];
  /** The tools that the worker's custom agent may use. Absent: all. */
  readonly toolsAllowed?: readonly string[];
  readonly begin: Input;
  /** The history of this attempt from before a crash. Its messages begin with the seed. */
  readonly past?: Past;
  readonly workspace: string;
  /** The sandbox of its commands; absent if they run uncontained. */
  readonly sandbox?: SandboxPolicy;
  readonly env: Readonly<Record<string, string>>; // for child processes
  readonly ignore: readonly string[]; // paths that searches skip
  readonly outputFolder: string;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly policy: Pick<Policy, 'rules' | 'yes' | 'contained'>;
  /** Requests with the same key share a cached prefix. All tasks of a run have the same key. */
  readonly cacheKey: string;
  /** The attempt may have ended the thread that it shared, so it gets one of its own. */
  readonly alone?: true;
};

/** The place where an attempt worked is lost, and the attempt is not to blame: it resumes in another one. */
export type Displaced = {
  readonly status: 'displaced';
  readonly why: string;
  /** Any of several attempts may have ended the place, so each resumes alone. */
  readonly alone: boolean;
};

/** Runs a task: in a pool of threads, or directly in this thread. */
export type RunTask = (spec: TaskSpec, link: TaskLink, signal: AbortSignal) => Promise<TaskOutcome | Displaced>;
