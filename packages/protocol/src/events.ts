// Everything that can happen, on one screen. The same vocabulary is printed by `--json`, sent over
// SSE and kept in the journal.
//
// An Event is what happened; a Recorded event adds the envelope, stamped by the bus alone. Events are
// plain JSON. What starts ends, once; a failure is an `_end` that says so. A `_delta` is live only:
// the `_end` that follows carries the whole.

import type { Failure } from './failures.ts';
import type { Json } from './json.ts';
import type { Cap } from './limits.ts';
import type { AssistantMessage, BlockEvent, Message, ToolDefinition, Usage } from './messages.ts';
import type { Sampling } from './model.ts';
import type { PlannedTask, SeedSummary } from './plan.ts';
import type { Delivered, RunSettings, SandboxUse, TaskRow } from './run.ts';

/** How a history is shortened. Without `tail` there is no summary: shorter results are enough. */
export type Cut = {
  /** Results among the first `messages` messages keep at most `chars` characters each, and no images. */
  readonly clip?: { readonly messages: number; readonly chars: number };
  /** The number of messages behind the summary. */
  readonly tail?: number;
  /** Positions of the messages before the tail that stay; the first user message where this is absent. */
  readonly kept?: readonly number[];
};

export type CallLabel = {
  readonly callId: string; // minted by drover, unique for ever: what readers match on
  readonly toolUseId: string; // the provider's
  readonly callIndex: number; // position among the calls of this response, from 0
  readonly index: number; // worker*100 + callIndex: for display
  readonly name: string;
  readonly summary: string;
};

/** A call that was handed out. Where no result has come by `deadline` (ISO time), it gets one that says so. */
export type PendingCall = CallLabel & { readonly args: Json; readonly deadline: string };

/** A tool that somebody else runs: what the model is told of it, and how long a call of it may take. */
export type RemoteTool = ToolDefinition & { readonly label?: string; readonly timeoutMs?: number };

export type Decision = {
  readonly allowed: boolean;
  readonly by: 'user' | 'nobody' | 'cancel';
  readonly always: boolean;
  readonly reason?: string;
};

/** It grew towards the limit, the provider refused it, or the user wished so. */
export type CompactionReason = 'limit' | 'overflow' | 'wish';

/** A command in the sandbox asked the proxy for a host. */
export type NetworkEvent = {
  readonly type: 'network';
  readonly host: string;
  readonly port: number;
  readonly allowed: boolean;
  readonly reason?: string; // why not
};

export type Event = RunEvent | SessionEvent;

/** What happens to a run and its tasks. */
export type RunEvent =
  | ({ readonly type: 'run_start'; readonly resumed: boolean } & RunSettings)
  | {
      readonly type: 'plan_ready';
      readonly tasks: readonly PlannedTask[];
      readonly round: number; // from 1
      readonly by: 'coordinator' | 'file' | 'fallback'; // fallback: one task with the whole goal
      readonly callId?: string; // the coordinator's call that is open until the plan is carried out
    }
  | { readonly type: 'task_ready' } // what it waits for has landed
  | { readonly type: 'task_start'; readonly base: string; readonly workspace: string; readonly seed: SeedSummary }
  | {
      readonly type: 'task_end'; // of one attempt; a task that is skipped has an end without a start
      readonly status: 'finished' | 'failed' | 'cancelled' | 'skipped';
      readonly again: boolean; // another attempt follows
      readonly failure?: Failure;
      readonly reason?: string;
      readonly summary?: string;
      readonly files: readonly string[];
      readonly commit?: string; // absent where nothing was changed
      readonly branch?: string;
      readonly usage: Usage;
      readonly cost?: number;
      readonly cached?: true; // nobody worked: what comes of it is known from an earlier run
    }
  | { readonly type: 'merge_start'; readonly commit: string; readonly onto: string }
  | {
      readonly type: 'merge_end';
      readonly outcome: 'landed' | 'conflict' | 'gate_failed';
      readonly again: boolean; // the task is tried once more, on the new head
      readonly commit?: string; // as it landed
      readonly onto?: string; // the head it conflicts with
      readonly conflicts?: readonly string[]; // paths
      readonly reason?: string;
    }
  | {
      readonly type: 'gate_start';
      readonly command: string;
      readonly tree: string;
      readonly tasks: readonly string[]; // merged so far and not yet landed
    }
  | {
      readonly type: 'gate_end';
      readonly command: string;
      readonly tree: string;
      readonly tasks: readonly string[];
      readonly passed: boolean;
      readonly flaky: boolean; // red, then green
      readonly output: string;
      readonly durationMs: number;
    }
  | { readonly type: 'throttle_wait'; readonly waitMs: number; readonly reason: string }
  | {
      readonly type: 'budget';
      readonly usage: Usage; // of the whole run so far
      readonly spent: number; // in the unit of the cap: dollars, else tokens
      readonly reserved: number;
      readonly cap?: Cap;
      readonly cost?: number; // US dollars; absent where the price is unknown
      readonly requestCost?: number; // US dollars of the request that has ended
      readonly most?: Usage; // a request is sent, and may come to this; told only where there is a cap
      readonly mostCost?: number; // the same in US dollars
    }
  | {
      readonly type: 'run_end';
      readonly outcome: 'done' | 'incomplete' | 'error' | 'cancelled';
      readonly exitCode: number;
      readonly reason?: string;
      readonly failure?: Failure;
      readonly tasks: readonly TaskRow[];
      readonly usage: Usage;
      readonly cost?: number;
      readonly delivered?: Delivered;
      readonly answer?: string; // the coordinator's last words
    };

/** What happens to one agent: alone, as the coordinator, or as a worker. */
export type SessionEvent =
  | {
      readonly type: 'session_start';
      readonly model: string;
      readonly cwd: string;
      readonly sandbox?: SandboxUse['used']; // absent where an older version wrote it
      readonly remoteTools?: readonly RemoteTool[]; // absent: none, or the same as before
      readonly remoteTimeoutMs?: number; // for those that don't say it themselves
      readonly options?: Sampling; // absent: none, or the same as before
    }
  | { readonly type: 'awaiting_tool_execution'; readonly calls: readonly PendingCall[] }
  | {
      readonly type: 'session_end';
      readonly outcome: 'done' | 'incomplete' | 'error' | 'cancelled' | 'suspended';
      readonly reason?: string;
      readonly messages: readonly Message[]; // the new ones only
      readonly usage: Usage;
      readonly cost?: number; // US dollars; absent where the price is unknown
    }
  // message
  | { readonly type: 'message_start'; readonly role: 'user' | 'assistant' | 'tool' }
  | {
      readonly type: 'message_end';
      readonly message: Message;
      readonly kept?: false; // false: shown, but not in history
      readonly cost?: number; // of an answer, in US dollars; absent where the price is unknown
    }
  | BlockEvent // text, thinking and toolcall, each with _start, _delta and _end
  // tool
  | ({ readonly type: 'tool_execution_start'; readonly args: Json } & CallLabel)
  | ({ readonly type: 'tool_execution_delta'; readonly delta: string } & Pick<
      CallLabel,
      'callId' | 'callIndex' | 'index' | 'name'
    >)
  | ({
      readonly type: 'tool_execution_end';
      readonly output: string;
      readonly outputSummary: string;
      readonly isError: boolean;
      readonly details?: Json;
    } & CallLabel)
  | ({
      readonly type: 'permission_request';
      readonly requestId: string;
      readonly subject: string;
      readonly why: string;
    } & CallLabel)
  | ({ readonly type: 'permission_decision'; readonly requestId: string } & Decision & CallLabel)
  | NetworkEvent
  // upkeep
  | {
      readonly type: 'usage';
      readonly usage: Usage;
      readonly total: Usage;
      readonly cost?: number; // US dollars of the total: the sum of what each request cost
      readonly requestCost?: number; // US dollars of this request, at the price of its model
      readonly estimate?: number; // our count of the prompt's tokens; absent for a summary
      readonly estimateRatio?: number; // reported ÷ estimate, as a moving average
      readonly window?: number; // tokens that the model takes
    }
  | {
      readonly type: 'retry';
      readonly attempt: number;
      readonly delayMs: number;
      readonly failure: Failure;
      readonly reason: string;
    }
  | { readonly type: 'attempt_discarded'; readonly reason: string; readonly failure?: Failure; readonly usage?: Usage }
  | { readonly type: 'compaction_start'; readonly tokens: number; readonly reason: CompactionReason }
  | ({
      readonly type: 'compaction_end';
      readonly ok: boolean;
      readonly tokens: number;
      readonly summary?: string; // absent where shorter results were enough
      readonly failure?: Failure;
    } & Cut)
  | { readonly type: 'heartbeat' }
  | { readonly type: 'warning'; readonly message: string }
  // ending: exactly one per turn
  | { readonly type: 'done'; readonly message: AssistantMessage }
  | { readonly type: 'incomplete' | 'error'; readonly failure: Failure; readonly reason: string }
  | { readonly type: 'cancelled' };

export type EventType = Event['type'];

/** Where in the work an event happened; each applies only where it is known. */
export type Place = {
  readonly worker?: number;
  readonly task?: string;
  readonly attempt?: number;
  readonly turn?: number;
  readonly step?: number;
};

/** Whose journal an event is in: a session's of its own, or a run's. */
export type Owner =
  | { readonly session: string; readonly run?: never }
  | { readonly run: string; readonly session?: never };

export type Envelope = { readonly v: 1; readonly seq: number; readonly at: string } & Owner & Place;

export type Recorded = Event & Envelope;

export type EventTraits = {
  readonly scope: 'run' | 'session';
  /** Lossy events may be dropped for a slow reader; reliable ones never; control ones never, and exactly once. */
  readonly delivery: 'lossy' | 'reliable' | 'control';
  /** Whether the event is on disk before a view or a tool acts on it. */
  readonly durable: boolean;
  /** Whether the event resets the idle clock of a turn. */
  readonly progress: boolean;
};

export const EVENTS: Readonly<Record<EventType, EventTraits>> = {
  run_start: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  plan_ready: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  task_ready: { scope: 'run', delivery: 'reliable', durable: false, progress: true },
  task_start: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  task_end: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  merge_start: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  merge_end: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  gate_start: { scope: 'run', delivery: 'reliable', durable: false, progress: true },
  gate_end: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  throttle_wait: { scope: 'run', delivery: 'reliable', durable: false, progress: true },
  budget: { scope: 'run', delivery: 'reliable', durable: false, progress: true },
  run_end: { scope: 'run', delivery: 'control', durable: true, progress: true },
  session_start: { scope: 'session', delivery: 'reliable', durable: true, progress: true },
  awaiting_tool_execution: { scope: 'session', delivery: 'control', durable: true, progress: true },
  session_end: { scope: 'session', delivery: 'control', durable: true, progress: true },
  message_start: { scope: 'session', delivery: 'reliable', durable: false, progress: true },
  message_end: { scope: 'session', delivery: 'reliable', durable: true, progress: true },
  text_start: { scope: 'session', delivery: 'reliable', durable: false, progress: true },
  text_delta: { scope: 'session', delivery: 'lossy', durable: false, progress: true },
  text_end: { scope: 'session', delivery: 'reliable', durable: false, progress: true },
  thinking_start: { scope: 'session', delivery: 'reliable', durable: false, progress: true },
  thinking_delta: { scope: 'session', delivery: 'lossy', durable: false, progress: true },
  thinking_end: { scope: 'session', delivery: 'reliable', durable: false, progress: true },
  toolcall_start: { scope: 'session', delivery: 'reliable', durable: false, progress: true },
  toolcall_delta: { scope: 'session', delivery: 'lossy', durable: false, progress: true },
  toolcall_end: { scope: 'session', delivery: 'reliable', durable: false, progress: true },
  tool_execution_start: { scope: 'session', delivery: 'reliable', durable: true, progress: true },
  tool_execution_delta: { scope: 'session', delivery: 'lossy', durable: false, progress: true },
  tool_execution_end: { scope: 'session', delivery: 'reliable', durable: true, progress: true },
  permission_request: { scope: 'session', delivery: 'control', durable: false, progress: false },
  permission_decision: { scope: 'session', delivery: 'reliable', durable: true, progress: true },
  network: { scope: 'session', delivery: 'reliable', durable: false, progress: true },
  usage: { scope: 'session', delivery: 'reliable', durable: false, progress: false },
  retry: { scope: 'session', delivery: 'reliable', durable: false, progress: false },
  attempt_discarded: { scope: 'session', delivery: 'reliable', durable: true, progress: false },
  compaction_start: { scope: 'session', delivery: 'reliable', durable: false, progress: true },
  compaction_end: { scope: 'session', delivery: 'reliable', durable: true, progress: true },
  heartbeat: { scope: 'session', delivery: 'lossy', durable: false, progress: false },
  warning: { scope: 'session', delivery: 'reliable', durable: false, progress: false },
  done: { scope: 'session', delivery: 'control', durable: true, progress: true },
  incomplete: { scope: 'session', delivery: 'control', durable: true, progress: true },
  error: { scope: 'session', delivery: 'control', durable: true, progress: true },
  cancelled: { scope: 'session', delivery: 'control', durable: true, progress: true },
};

/** Whether this drover knows the type; a journal of a newer version may hold others. */
export function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENTS, type);
}
