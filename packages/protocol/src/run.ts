// A run as data: its settings, and the result of each task. Events carry both.

import type { Failure } from './failures.ts';
import type { Cap, Limits } from './limits.ts';
import type { Usage } from './messages.ts';
import type { Seeding } from './plan.ts';

/** `auto`: use a sandbox if available. `required`: fail without one. `off`: run commands uncontained. */
export type SandboxMode = 'auto' | 'required' | 'off';

/** Which sandbox the commands ran in. */
export type SandboxUse = {
  readonly mode: SandboxMode;
  readonly used: 'bubblewrap' | 'seatbelt' | 'none' | 'off'; // none: no sandbox was available
  readonly version?: string;
  readonly net: readonly string[]; // hosts that commands may reach
  readonly writable: readonly string[]; // writable folders besides the workspace
};

/** Models by role, as provider/name. The first is preferred, the others are fallbacks in order. */
export type ModelRoles = {
  readonly plan: readonly string[];
  readonly work: readonly string[];
  readonly review?: readonly string[]; // absent: results are not reviewed
};

export type Delivery = 'branch' | 'merge' | 'patch';

/** Everything that a resumed run needs from its first start. Contains no secrets. */
export type RunSettings = {
  readonly goal: string;
  readonly model: string; // provider/name; of the coordinator
  readonly models?: ModelRoles; // absent: every role uses `model`
  readonly repository: string; // its top folder
  readonly base: string; // the commit that the run starts from
  readonly branch?: string; // the user's branch; absent if HEAD is detached
  readonly notIncluded: readonly string[]; // changed or untracked files in the user's checkout; the base lacks them
  readonly workers: number; // 0: tasks run in the main thread
  readonly seeding: Seeding;
  readonly gates: readonly string[];
  readonly approve?: true; // plans wait for an answer over HTTP
  readonly traceparent?: string; // the trace that the run is a part of, by W3C Trace Context
  readonly allowRedBase?: true; // gates that fail on the base may stay red; none may turn red
  readonly setup?: readonly string[]; // commands that prepare each workspace
  readonly dependencies?: readonly string[]; // folders of the checkout that each workspace gets, read-only
  readonly sandbox?: SandboxUse; // absent in journals of older versions
  readonly deliver: Delivery;
  readonly resultBranch?: string; // absent in journals of older versions: drover/<run>/merged
  readonly author?: { readonly name: string; readonly email: string }; // of commits; absent in older journals
  readonly cap?: Cap;
  readonly taskCap?: Cap; // per task
  readonly timeoutMs?: number;
  readonly roundsMax: number;
  readonly tasksMax: number;
  readonly attemptsMax: number; // per task, when its worker fails
  readonly taskLimits: Limits;
  readonly failFast: boolean;
  /** The run ends after this many failed tasks. */
  readonly failuresMax?: number;
  /** This many tasks run first. Their cost decides whether the others start. */
  readonly canary?: { readonly tasks: number; readonly cost?: Cap };
};

export function modelRolesOfRun({ model, models }: Pick<RunSettings, 'model' | 'models'>): ModelRoles {
  return models ?? { plan: [model], work: [model] };
}

export type TaskStatus =
  | 'landed'
  | 'done' // no merge was needed
  | 'failed'
  | 'skipped'
  | 'conflict'
  | 'gate_failed'
  | 'cancelled';

/** The task landed, or had nothing to merge: it needs nothing more. */
export function isDone(status: string | undefined): boolean {
  return status === 'landed' || status === 'done';
}

/** Lines that a change adds and removes. */
export type LineCount = { readonly added: number; readonly removed: number };

export type TaskRow = {
  readonly task: string;
  readonly title: string;
  readonly status: TaskStatus;
  readonly attempts: number;
  readonly files: readonly string[];
  readonly lines?: LineCount; // of its commit; absent in older journals
  readonly commit?: string;
  readonly branch?: string; // the branch with its work, if the work was not delivered
  readonly usage: Usage;
  readonly cost?: number;
  readonly waits: number; // milliseconds spent waiting for the throttle
  readonly elapsedMs?: number; // from the start of its first attempt to its end
  readonly cached?: true; // the result comes from an earlier run; no request was sent
  readonly summary?: string;
  readonly reason?: string;
  readonly failure?: Failure;
};

export type Delivered = {
  readonly deliver: Delivery;
  readonly commit: string;
  readonly branch?: string;
  readonly patches?: readonly string[]; // paths
  /** Why the result was delivered in another way than requested. */
  readonly instead?: string;
  /** By task: the branch with its work, if an earlier attempt occupies the branch named after the task. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** The command that the user should type next. */
  readonly next?: string;
};
