// Every event that drover can emit. `--json`, SSE and the journal all use this vocabulary.
//
// Guarantees
//   1. Events are plain JSON. A Recorded event adds the envelope, which only the bus stamps.
//   2. Every `_start` gets exactly one `_end`. A failure is an `_end` that carries it.
//   3. A `_delta` is live only. The `_end` that follows carries the whole content.

import type { Failure } from './failures.ts';
import type { Json } from './json.ts';
import type { Cap } from './limits.ts';
import type { AssistantMessage, BlockEvent, Message, ToolDefinition, Usage } from './messages.ts';
import type { Sampling } from './model.ts';
import type { PlannedTask, SeedSummary } from './plan.ts';
import type { Delivered, RunSettings, SandboxUse, TaskRow } from './run.ts';

const COMMIT_CHARS = 8;

/** How compaction shortens a history. Without `tail` there is no summary: clipped results are enough. */
export type Cut = {
  /** Results among the first `messages` messages keep at most `chars` characters each, and no images. */
  readonly clip?: { readonly messages: number; readonly chars: number };
  /** The number of messages kept after the summary. */
  readonly tail?: number;
  /** Positions of the messages before the tail that stay. If absent, only the first user message stays. */
  readonly kept?: readonly number[];
};

export type CallLabel = {
  readonly callId: string; // made by drover and globally unique; readers match on it
  readonly toolUseId: string; // the provider's id
  readonly callIndex: number; // position among the calls of this response, from 0
  readonly index: number; // worker*100 + callIndex: for display
  readonly name: string;
  readonly summary: string;
};

/** A call that waits for a remote result. At `deadline` (ISO time) drover adds a timeout result. */
export type PendingCall = CallLabel & { readonly args: Json; readonly deadline: string };

/** A tool that the client runs: its definition for the model, and the time limit of a call. */
export type RemoteTool = ToolDefinition & { readonly label?: string; readonly timeoutMs?: number };

export type Decision = {
  readonly allowed: boolean;
  readonly by: 'user' | 'nobody' | 'cancel';
  readonly always: boolean;
  readonly reason?: string;
};

/** A field that an MCP server wants the user to fill in. */
export type AskedField = {
  readonly name: string;
  readonly about?: string;
  readonly kind: 'text' | 'number' | 'yes or no' | 'choice' | 'choices';
  readonly choices?: readonly string[];
  readonly default?: string;
  readonly required: boolean;
};

/** The history came near the limit, the provider refused its size, or the user asked for it. */
export type CompactionReason = 'limit' | 'overflow' | 'wish';

/** A command in the sandbox asked the proxy for a host. */
export type NetworkEvent = {
  readonly type: 'network';
  readonly host: string;
  readonly port: number;
  readonly allowed: boolean;
  readonly reason?: string; // why the host was denied
  readonly times?: number; // refusals that this event stands for, if more than one
};

/** A host that works for a run. */
export type HostName = { readonly id: string; readonly name: string };

/** The progress of an attempt on its way to a host, and there. */
type PlacementState =
  | { readonly state: 'queued' } // durable before any host can take it
  | { readonly state: 'accepted'; readonly host: HostName; readonly workspace: string }
  | { readonly state: 'checkpoint'; readonly commit: string; readonly leftOut: readonly string[] }
  | { readonly state: 'lost'; readonly host: HostName; readonly reason: string };

export type Event = RunEvent | SessionEvent;

/** Events of a run and its tasks. */
export type RunEvent =
  | ({ readonly type: 'run_start'; readonly resumed: boolean } & RunSettings)
  | {
      readonly type: 'plan_ready';
      readonly tasks: readonly PlannedTask[];
      readonly round: number; // from 1
      readonly by: 'coordinator' | 'file' | 'fallback'; // fallback: one task with the whole goal
      readonly callId?: string; // the coordinator's call, open until the plan is executed
    }
  | { readonly type: 'plan_proposed'; readonly tasks: readonly PlannedTask[]; readonly callId?: string } // the user is asked
  | { readonly type: 'plan_comment'; readonly comment: string; readonly callId?: string } // goes back to the coordinator
  // The user wants them retried. `live`: while the run was at work.
  | { readonly type: 'tasks_reopened'; readonly tasks: readonly PlannedTask[]; readonly live?: true }
  | { readonly type: 'run_pause'; readonly paused: boolean } // while paused, no attempt starts
  | { readonly type: 'task_message'; readonly id: string; readonly text: string } // of the user, to the worker
  | { readonly type: 'task_message_delivered'; readonly id: string } // the worker's conversation has it
  | { readonly type: 'task_ready' } // its dependencies have landed
  | {
      readonly type: 'task_start';
      readonly base: string;
      readonly workspace: string;
      readonly seed: SeedSummary;
      readonly host?: string; // absent: on the coordinator's machine
    }
  /** The attempt lost its thread or its host, and resumes in another one from the journal. */
  | { readonly type: 'attempt_moved'; readonly reason: string; readonly alone: boolean }
  /** `epoch` rises with every placement of the run. Messages of older ones are ignored. */
  | ({ readonly type: 'placement'; readonly epoch: number } & PlacementState)
  | {
      readonly type: 'task_end'; // ends one attempt; a skipped task has an end without a start
      readonly status: 'finished' | 'failed' | 'cancelled' | 'skipped';
      readonly again: boolean; // another attempt follows
      readonly failure?: Failure;
      readonly reason?: string;
      readonly summary?: string;
      readonly files: readonly string[];
      readonly commit?: string; // absent if nothing changed
      readonly branch?: string;
      readonly usage: Usage;
      readonly cost?: number;
      readonly cached?: true; // no worker ran: the result comes from an earlier run
    }
  | { readonly type: 'merge_start'; readonly commit: string; readonly onto: string }
  | {
      readonly type: 'merge_end';
      readonly outcome: 'landed' | 'conflict' | 'gate_failed';
      readonly again: boolean; // the task gets another attempt, on the new head
      readonly commit?: string; // the commit that landed
      readonly onto?: string; // the head that it conflicts with
      readonly conflicts?: readonly string[]; // paths
      readonly reason?: string;
    }
  | {
      readonly type: 'gate_start';
      readonly command: string;
      readonly tree: string; // empty for a session, whose gates test its folder as it is
      readonly tasks: readonly string[]; // merged into this tree but not landed yet; empty for a session
      readonly base?: true; // the tree is the run's base, tested before any worker starts
    }
  | {
      readonly type: 'gate_end';
      readonly command: string;
      readonly tree: string;
      readonly tasks: readonly string[];
      readonly base?: true;
      readonly passed: boolean;
      readonly flaky: boolean; // failed first, then passed
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
      readonly cost?: number; // US dollars; absent if the price is unknown
      readonly requestCost?: number; // US dollars of the request that just ended
      readonly most?: Usage; // upper bound for the request just sent; only with a cap
      readonly mostCost?: number; // the same upper bound in US dollars
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
      readonly answer?: string; // the coordinator's final answer
    }
  | { readonly type: 'delivered'; readonly delivered: Delivered }; // later, on the user's request

export type GateEvent = Extract<RunEvent, { readonly type: 'gate_start' | 'gate_end' }>;

/** Events of one agent: alone, as the coordinator, or as a worker. */
export type SessionEvent =
  | {
      readonly type: 'session_start';
      readonly model: string;
      readonly cwd: string;
      readonly sandbox?: SandboxUse['used']; // absent in journals of older versions
      readonly remoteTools?: readonly RemoteTool[]; // absent: none, or unchanged
      readonly remoteTimeoutMs?: number; // for tools without a timeout of their own
      readonly options?: Sampling; // absent: none, or unchanged
    }
  | { readonly type: 'awaiting_tool_execution'; readonly calls: readonly PendingCall[] }
  | {
      readonly type: 'session_end';
      readonly outcome: 'done' | 'incomplete' | 'error' | 'cancelled' | 'suspended';
      readonly reason?: string;
      readonly messages: readonly Message[]; // only the new ones
      readonly usage: Usage;
      readonly cost?: number; // US dollars; absent if the price is unknown
    }
  // message
  | { readonly type: 'message_start'; readonly role: 'user' | 'assistant' | 'tool' }
  | {
      readonly type: 'message_end';
      readonly message: Message;
      readonly kept?: false; // false: shown, but not in the history
      readonly cost?: number; // of an answer, in US dollars; absent if the price is unknown
    }
  | BlockEvent // text, thinking and toolcall blocks, each with _start, _delta and _end
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
      readonly field?: AskedField; // the answer is its value, in words
    } & CallLabel)
  | ({ readonly type: 'permission_decision'; readonly requestId: string } & Decision & CallLabel)
  | NetworkEvent
  // upkeep
  | {
      readonly type: 'usage';
      readonly usage: Usage;
      readonly total: Usage;
      readonly cost?: number; // US dollars of `total`: the sum over all requests
      readonly requestCost?: number; // US dollars of this request, at the price of its model
      readonly estimate?: number; // drover's token count of the prompt; absent for a summary
      readonly estimateRatio?: number; // reported ÷ estimate, as a moving average
      readonly window?: number; // context window of the model, in tokens
    }
  | {
      readonly type: 'retry';
      readonly retry: number; // from 1; `attempt` is that of the task
      readonly retriesMax: number;
      readonly delayMs: number;
      readonly failure: Failure;
      readonly reason: string;
    }
  | {
      readonly type: 'model_fallback'; // later requests of this attempt go to the next model of its list
      readonly from: string; // provider/name
      readonly to: string;
      readonly failure: Failure;
      readonly reason: string;
    }
  | { readonly type: 'attempt_discarded'; readonly reason: string; readonly failure?: Failure; readonly usage?: Usage }
  | { readonly type: 'compaction_start'; readonly tokens: number; readonly reason: CompactionReason }
  | ({
      readonly type: 'compaction_end';
      readonly ok: boolean;
      readonly tokens: number;
      readonly summary?: string; // absent if clipping results was enough
      readonly failure?: Failure;
    } & Cut)
  | { readonly type: 'heartbeat' }
  | { readonly type: 'warning'; readonly message: string }
  // ending: exactly one per turn
  | { readonly type: 'done'; readonly message: AssistantMessage }
  | { readonly type: 'incomplete' | 'error'; readonly failure: Failure; readonly reason: string }
  | { readonly type: 'cancelled' };

export type Fallback = Extract<SessionEvent, { readonly type: 'model_fallback' }>;
type Retry = Extract<SessionEvent, { readonly type: 'retry' }>;

export type EventType = Event['type'];

/** Position of an event in the work. A field is absent if it does not apply. */
export type Place = {
  readonly worker?: number;
  readonly task?: string;
  readonly attempt?: number;
  readonly turn?: number;
  readonly step?: number;
};

/** The owner of the journal that holds the event: a standalone session or a run. */
export type Owner =
  | { readonly session: string; readonly run?: never }
  | { readonly run: string; readonly session?: never };

export type Envelope = { readonly v: 1; readonly seq: number; readonly at: string } & Owner & Place;

export type Recorded = Event & Envelope;

export type EventTraits = {
  readonly scope: 'run' | 'session';
  /** `lossy`: may be dropped for a slow reader. `reliable`: never dropped. `control`: delivered exactly once. */
  readonly delivery: 'lossy' | 'reliable' | 'control';
  /** Whether the event is on disk before a view or a tool acts on it. */
  readonly durable: boolean;
  /** Whether the event resets the idle clock of a turn. */
  readonly progress: boolean;
};

export const EVENTS: Readonly<Record<EventType, EventTraits>> = {
  run_start: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  plan_ready: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  plan_proposed: { scope: 'run', delivery: 'control', durable: true, progress: true },
  plan_comment: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  tasks_reopened: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  run_pause: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  task_message: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  task_message_delivered: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  task_ready: { scope: 'run', delivery: 'reliable', durable: false, progress: true },
  task_start: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  attempt_moved: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  placement: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  task_end: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  merge_start: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  merge_end: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  gate_start: { scope: 'run', delivery: 'reliable', durable: false, progress: true },
  gate_end: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
  throttle_wait: { scope: 'run', delivery: 'reliable', durable: false, progress: true },
  budget: { scope: 'run', delivery: 'reliable', durable: false, progress: true },
  run_end: { scope: 'run', delivery: 'control', durable: true, progress: true },
  delivered: { scope: 'run', delivery: 'reliable', durable: true, progress: true },
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
  model_fallback: { scope: 'session', delivery: 'reliable', durable: true, progress: false },
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

/** Describes a move to another model in one line. */
export function fallbackEventWords({ from, to, reason }: Pick<Fallback, 'from' | 'to' | 'reason'>): string {
  return `asking ${to} instead of ${from}: ${reason}`;
}

/** When a failed request is sent again, as in `retry 2 of 7 in 4.2 s`. */
export function retryWords({ retry, retriesMax, delayMs }: Omit<Retry, 'type'>): string {
  const seconds = delayMs / 1_000;
  return `retry ${retry} of ${retriesMax} in ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}

/** Describes a move to another thread in one line. */
export function movedEventWords({ reason, alone }: Extract<RunEvent, { readonly type: 'attempt_moved' }>): string {
  return `resumes in ${alone ? 'a thread of its own' : 'another place'}: ${reason}`;
}

/** Describes a placement in one line. */
export function placementEventWords(event: Extract<RunEvent, { readonly type: 'placement' }>): string {
  switch (event.state) {
    case 'queued':
      return `offered to the hosts (epoch ${event.epoch})`;
    case 'accepted':
      return `taken by ${event.host.name}`;
    case 'checkpoint':
      return `saved as ${event.commit.slice(0, COMMIT_CHARS)}`;
    case 'lost':
      return `${event.host.name} lost it: ${event.reason}`;
  }
}

/** Whether this version knows the type. A journal of a newer version may hold others. */
export function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENTS, type);
}
