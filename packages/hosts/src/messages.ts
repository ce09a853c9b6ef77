// Everything that travels between a coordinator and a host, one line per message.
//
// Frames belong to one placement and arrive exactly once, in order. Notes belong to none and may be lost.

import { createHash } from 'node:crypto';
import type { Failure } from '@drover/protocol/failures';
import type { HostName } from '@drover/protocol/events';
import type { Displaced } from '@drover/core/task/task';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { Identity, ObjectFormat } from '@drover/coordinator/git/repository';
import type { Rule } from '@drover/core/permission/rules';
import type { SandboxMode } from '@drover/protocol/run';

/** Job of the queue: one placement of one attempt. */
export type Job = {
  readonly run: string;
  readonly task: string;
  readonly attempt: number;
  readonly epoch: number; // rises with every placement of the run
  readonly coordinator: string; // the address of its inbox
  readonly digest: string; // of the order, which goes over the line
};

/** The facts from which a host prepares a workspace. */
export type Order = {
  readonly run: string;
  readonly startedAt: string;
  readonly task: string;
  readonly attempt: number;
  readonly worker: number;
  /** Names the repository, for the host's cache. */
  readonly repository: string;
  readonly objectFormat: ObjectFormat;
  readonly identity: Identity;
  readonly base: string;
  /** Where the host may fetch the history; without credentials. */
  readonly remote?: string;
  /** The commit with the files that an earlier host had reported. */
  readonly checkpoint?: string;
  /** The workspace that the host kept for this attempt, if it still has one, is resumed as it is. */
  readonly goesOn: boolean;
  readonly setup: readonly string[];
  readonly sandbox: SandboxMode;
  readonly net: readonly string[]; // hosts that the run lets commands reach
  readonly rules: readonly Rule[];
};

export type ToHost =
  | { readonly type: 'order'; readonly order: Order }
  | { readonly type: 'pack'; readonly last: boolean }
  /** The blob is the TaskSpec in V8's format: it holds maps and patterns, which JSON has not. */
  | { readonly type: 'task' }
  | { readonly type: 'wire'; readonly message: unknown }
  | { readonly type: 'release' };

export type FromHost =
  | { readonly type: 'refused'; readonly why: string }
  | { readonly type: 'have'; readonly commits: readonly string[] }
  | { readonly type: 'ready'; readonly workspace: string }
  | { readonly type: 'wire'; readonly message: unknown }
  | { readonly type: 'pack'; readonly last: boolean }
  | { readonly type: 'checkpoint'; readonly commit: string; readonly leftOut: readonly string[] }
  /** `unsaved`: why the files could not become a commit. */
  | { readonly type: 'outcome'; readonly outcome: TaskOutcome | Displaced; readonly unsaved?: Failure }
  /** The host cannot carry on with the attempt, which is not to blame. */
  | { readonly type: 'given up'; readonly why: string };

export type Note =
  /** A host has taken the job, and waits for the order. Repeated until the order is there. */
  | { readonly type: 'hello'; readonly line: string; readonly host: HostName }
  /** There is work in this queue. */
  | { readonly type: 'wake'; readonly queue: string; readonly labels: readonly string[] }
  /** The host is alive, and works on these lines. */
  | { readonly type: 'renew'; readonly id: number; readonly host: string; readonly lines: readonly string[] }
  | { readonly type: 'renewed'; readonly id: number }
  /** The line is not open at the sender: its placement is over, or has another epoch. */
  | { readonly type: 'closed'; readonly line: string; readonly why: string }
  /** The run is over: kept workspaces of it are not needed. */
  | { readonly type: 'run over'; readonly run: string };

export function digestOfOrder(order: Order): string {
  return createHash('sha256').update(JSON.stringify(order)).digest('hex');
}

/** The id of a placement: of its job, and of its line. */
export function placementId({ run, task, attempt, epoch }: Omit<Job, 'digest' | 'coordinator'>): string {
  return `${run}.${Buffer.from(task).toString('base64url')}.${attempt}.${epoch}`;
}
