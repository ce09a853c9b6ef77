// Wire types besides events: the bodies of requests and responses.
//
// The client sends and reads these shapes. The compiler checks that the server's schemas match this file.

import type { PendingCall, Recorded } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import type { Message, Usage } from '@drover/protocol/messages';
import type { Sampling } from '@drover/protocol/model';
import type { PlannedTask } from '@drover/protocol/plan';
import type { Delivered, Delivery, TaskRow } from '@drover/protocol/run';

/** A tool that runs on the client's side. */
export type RemoteTool = {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject; // JSON Schema of its arguments
  readonly timeoutMs?: number; // time limit for the result of a call (default: the session's remoteTimeoutMs)
};

/** A message from before the session began. */
export type OpeningMessage = { readonly role: 'user' | 'assistant'; readonly content: string };

/** POST /v1/sessions */
export type NewSession = {
  readonly model?: string; // provider/name (default: the server's own)
  readonly cwd?: string; // inside the served folder (default: that folder)
  readonly tools?: readonly RemoteTool[];
  readonly remoteTimeoutMs?: number; // time limit for the result of a remote call
  readonly messages?: readonly OpeningMessage[]; // the conversation before the session
  readonly options?: Sampling; // refused with 400 if the model does not support them
};

/** POST /v1/sessions/:id/execute, answered with the events of the execution. */
export type ExecuteRequest = {
  readonly content: string;
  /** Cancels waiting remote calls. Without it, the server refuses a message while calls wait. */
  readonly cancelPending?: boolean;
  /** Changes the model from this turn on. */
  readonly model?: string;
};

export type RemoteResult = { readonly callId: string; readonly output: string; readonly isError?: boolean };

/** POST /v1/sessions/:id/tool-results */
export type ToolResults = { readonly results: readonly RemoteResult[] };

export type SessionStatus = 'idle' | 'running' | 'awaiting_tool_execution';

export type ResultsTaken = { readonly status: SessionStatus; readonly pending: readonly PendingCall[] };

/**
 * POST /v1/sessions/:id/permissions/:requestId, and the same under /v1/runs. `words` go to the agent with a no, and are
 * the value of a field with a yes.
 */
export type PermissionAnswer = { readonly allowed: boolean; readonly always?: boolean; readonly words?: string };

/** A question that waits for an answer. */
export type OpenQuestion = Extract<Recorded, { readonly type: 'permission_request' }>;

/** The text so far of an unfinished block. */
export type PartialBlock = { readonly part: number; readonly type: 'text' | 'thinking'; readonly text: string };

/** GET /v1/sessions/:id: the state after the event `seq`. Listen from `seq` on. */
export type SessionSnapshot = {
  readonly id: string;
  readonly seq: number;
  readonly status: SessionStatus;
  /** How the last turn ended; absent if none has. */
  readonly ending?: 'done' | 'incomplete' | 'error' | 'cancelled';
  readonly model: string;
  readonly cwd: string;
  readonly title: string;
  readonly messages: readonly Message[];
  /** The answer in progress; absent if there is none. Its deltas after `seq` are still to come. */
  readonly partial?: readonly PartialBlock[];
  readonly tools: readonly RemoteTool[];
  readonly pending: readonly PendingCall[];
  readonly questions: readonly OpenQuestion[];
  readonly usage: Usage;
  readonly cost?: number;
};

/** GET /v1/sessions: `{ sessions: SessionRow[] }` */
export type SessionRow = {
  readonly id: string;
  readonly title: string;
  readonly model: string;
  readonly cwd: string;
  readonly state: string;
  readonly live: boolean; // this or another process is working on it
  readonly waiting: number; // questions that this server waits for an answer to
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly cost?: number;
};

/** POST /v1/runs */
export type NewRun = {
  readonly goal: string;
  readonly model?: string;
  readonly cwd?: string; // a repository inside the served folder
  readonly workers?: number;
  readonly gates?: readonly string[];
  readonly deliver?: 'branch' | 'merge' | 'patch';
  readonly budget?: string; // such as 5usd or 200ktok
  readonly timeout?: string; // such as 30m
  readonly approve?: boolean; // true: plans wait for an answer; otherwise they run at once
};

/** POST /v1/runs/:id/resume. Without `approve`: as before; a plan that was declined or not answered waits. */
export type RunResume = Pick<NewRun, 'approve'>;

/** POST /v1/runs/:id/retry: these tasks, or all that failed. */
export type TaskText = { readonly text: string };

export type RunPause = { readonly paused: boolean };

export type RunRetry = RunResume & { readonly tasks?: readonly string[] };

/** POST /v1/runs/:id/merge */
export type RunMerge = { readonly deliver?: Delivery }; // default: merge

export type RunDelivered = { readonly delivered: Delivered };

/** POST /v1/runs/:id/plan: run the plan, possibly changed; stop; or comment for the coordinator. */
export type PlanAnswer = {
  readonly answer: 'run' | 'stop' | 'comment';
  readonly tasks?: readonly PlannedTask[]; // with `run`: the changed plan
  readonly comment?: string; // with `comment`
};

/** GET /v1/runs/:id/diff: all landed work, as a patch. */
export type RunDiff = { readonly patch: string };

export type Made = { readonly id: string };

/** GET /v1/runs: `{ runs: RunRow[] }` */
export type RunRow = {
  readonly id: string;
  readonly title: string;
  readonly model: string;
  readonly cwd: string;
  readonly state: string;
  readonly live: boolean;
  readonly waiting: number; // questions and plans that this server waits for an answer to
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly tasks: number;
  readonly landed: number;
  readonly cost?: number;
};

/** GET /v1/runs/:id: the state after the event `seq`. */
export type RunSnapshot = RunRow & {
  readonly seq: number;
  readonly goal: string;
  readonly rows: readonly TaskRow[];
  readonly questions: readonly OpenQuestion[];
  readonly plan?: readonly PlannedTask[]; // a question waits for an answer
};

/** GET /v1/runs/:id/tasks/:task/diff: the changes of a task, as a patch. */
export type TaskDiff = { readonly task: string; readonly commit: string; readonly patch: string };

/** A model of the catalog whose provider this server can ask. */
export type ServedModel = {
  readonly model: string; // provider/name
  readonly contextTokens: number;
  readonly price?: { readonly input: number; readonly output: number }; // US dollars per million tokens
};

/** GET /v1/server */
export type ServerInfo = {
  readonly version: string;
  readonly root: string; // the folder that is served
  readonly model?: string; // the default; absent if each session and run must name one
  readonly models: readonly ServedModel[];
};

/** The format of every refusal (application/problem+json). */
export type Problem = {
  readonly type: string; // a code for programs: unauthorized, session.running, ...
  readonly title: string; // the problem in one sentence
  readonly status: number;
  readonly detail?: string; // the fix, or the position in the body
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
};

/** A stream event outside the journal: the reader was too slow or named an unknown event. Reconnect after `seq`. */
export type Resync = { readonly type: 'resync'; readonly seq: number; readonly reason: string };
