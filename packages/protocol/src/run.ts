// A run as data: what it was started with, and what became of each task. Both are in the event stream.

import type { Failure } from './failures.ts';
import type { Cap, Limits } from './limits.ts';
import type { Usage } from './messages.ts';
import type { Seeding } from './plan.ts';

/** Use a sandbox where there is one, insist on it, or run commands in the open. */
export type SandboxMode = 'auto' | 'required' | 'off';

/** How commands were contained. */
export type SandboxUse = {
  readonly mode: SandboxMode;
  readonly used: 'bubblewrap' | 'seatbelt' | 'none' | 'off'; // none: there was none to be had
  readonly version?: string;
  readonly net: readonly string[]; // hosts that commands may reach
  readonly writable: readonly string[]; // folders besides the workspace
};

export type Delivery = 'branch' | 'merge' | 'patch';

/** All that a run needs to know again after a crash; secrets are in none of it. */
export type RunSettings = {
  readonly goal: string;
  readonly model: string; // provider/name
  readonly repository: string; // its top folder
  readonly base: string; // the commit everything starts from
  readonly branch?: string; // the user's, absent where HEAD is detached
  readonly notIncluded: readonly string[]; // changed or untracked in the user's checkout, so not in the base
  readonly workers: number; // 0: in this thread
  readonly seeding: Seeding;
  readonly gates: readonly string[];
  readonly setup?: readonly string[]; // prepares each workspace
  readonly sandbox?: SandboxUse; // absent where an older version wrote it
  readonly deliver: Delivery;
  readonly cap?: Cap;
  readonly taskCap?: Cap; // for each task
  readonly timeoutMs?: number;
  readonly roundsMax: number;
  readonly tasksMax: number;
  readonly attemptsMax: number; // of one task, where its worker fails
  readonly taskLimits: Limits;
  readonly failFast: boolean;
  /** The run ends when so many tasks have failed. */
  readonly failuresMax?: number;
  /** So many tasks go ahead; what they cost decides whether the others follow. */
  readonly canary?: { readonly tasks: number; readonly cost?: Cap };
};

export type TaskStatus =
  | 'landed'
  | 'done' // it had nothing to merge
  | 'failed'
  | 'skipped'
  | 'conflict'
  | 'gate_failed'
  | 'cancelled';

/** The task landed, or had nothing to merge: it needs nothing more. */
export function isDone(status: string | undefined): boolean {
  return status === 'landed' || status === 'done';
}

export type TaskRow = {
  readonly task: string;
  readonly title: string;
  readonly status: TaskStatus;
  readonly attempts: number;
  readonly files: readonly string[];
  readonly commit?: string;
  readonly branch?: string; // where its work is, if it isn't in what was delivered
  readonly usage: Usage;
  readonly cost?: number;
  readonly waits: number; // milliseconds spent waiting for the throttle
  readonly elapsedMs?: number; // from its first attempt to its end
  readonly cached?: true; // its work was known from an earlier run, and nothing was asked
  readonly summary?: string;
  readonly reason?: string;
  readonly failure?: Failure;
};

export type Delivered = {
  readonly deliver: Delivery;
  readonly commit: string;
  readonly branch?: string;
  readonly patches?: readonly string[]; // paths
  /** Why it was not delivered as asked. */
  readonly instead?: string;
  /** By task: the branch its work is on, where that of its name holds what an earlier attempt left. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** What the user types next. */
  readonly next?: string;
};
