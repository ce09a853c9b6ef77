// Events and failures as the OpenAPI document describes them.
//
// The compiler checks that every type of event is here. A test checks events of real sessions and runs against the
// schemas. Objects are open: a newer server may add fields.

import type { EventType } from '@drover/protocol/events';
import { FAILURES } from '@drover/protocol/failures';
import { z } from 'zod';
import { callLabel, json, message, pendingCall, remoteTool, sampling, taskRow, usage } from './schemas.ts';

export const failureKind = z.enum(Object.keys(FAILURES).toSorted());
const failure = z.looseObject({ kind: failureKind });

const envelope = {
  v: z.literal(1),
  seq: z.int().describe('The number of the event, and its id in the stream'),
  at: z.string().describe('ISO time'),
  session: z.string().exactOptional(),
  run: z.string().exactOptional(),
  worker: z.int().exactOptional(),
  task: z.string().exactOptional(),
  attempt: z.int().exactOptional(),
  turn: z.int().exactOptional(),
  step: z.int().exactOptional(),
  gap: z.literal(true).exactOptional().describe('Deltas before this event are missing; the `_end` has the whole text'),
};

const part = z.int();
const cost = z.number().exactOptional();
const reason = z.string();
const files = z.array(z.string());
const starts = { part };
const grows = { part, delta: z.string() };
const ends = { part, text: z.string() };
const called = { part, callIndex: z.int() };
const decided = { allowed: z.boolean(), by: z.enum(['user', 'nobody', 'cancel']), always: z.boolean() };
const askedField = z.object({
  name: z.string(),
  about: z.string().exactOptional(),
  kind: z.enum(['text', 'number', 'yes or no', 'choice', 'choices']),
  choices: z.array(z.string()).exactOptional(),
  default: z.string().exactOptional(),
  required: z.boolean(),
});
const failed = { failure, reason };
const tested = { command: z.string(), tree: z.string(), tasks: files, base: z.literal(true).exactOptional() };

/** The fields of each type of event besides the envelope. */
const FIELDS: Readonly<Record<EventType, z.ZodRawShape>> = {
  run_start: { resumed: z.boolean(), goal: z.string() },
  plan_ready: { tasks: z.array(json), round: z.int(), by: z.enum(['coordinator', 'file', 'fallback']) },
  plan_proposed: { tasks: z.array(json), callId: z.string().exactOptional() },
  plan_comment: { comment: z.string(), callId: z.string().exactOptional() },
  tasks_reopened: { tasks: z.array(json), live: z.literal(true).exactOptional() },
  run_pause: { paused: z.boolean() },
  task_message: { id: z.string(), text: z.string() },
  task_message_delivered: { id: z.string() },
  task_ready: {},
  task_start: { base: z.string(), workspace: z.string(), host: z.string().exactOptional() },
  placement: {
    epoch: z.int(),
    state: z.enum(['queued', 'accepted', 'checkpoint', 'lost']),
    host: z.object({ id: z.string(), name: z.string() }).exactOptional(),
    reason: reason.exactOptional(),
  },
  task_end: {
    status: z.enum(['finished', 'failed', 'cancelled', 'skipped']),
    again: z.boolean(),
    failure: failure.exactOptional(),
    reason: reason.exactOptional(),
    summary: z.string().exactOptional(),
    files,
    commit: z.string().exactOptional(),
    usage,
    cost,
  },
  attempt_moved: { reason, alone: z.boolean() },
  merge_start: { commit: z.string(), onto: z.string() },
  merge_end: {
    outcome: z.enum(['landed', 'conflict', 'gate_failed']),
    again: z.boolean(),
    conflicts: files.exactOptional(),
  },
  gate_start: tested,
  gate_end: { ...tested, passed: z.boolean(), output: z.string() },
  throttle_wait: { waitMs: z.number(), reason },
  budget: { usage, spent: z.number(), reserved: z.number(), cost },
  run_end: {
    outcome: z.enum(['done', 'incomplete', 'error', 'cancelled']),
    exitCode: z.int(),
    reason: reason.exactOptional(),
    failure: failure.exactOptional(),
    tasks: z.array(taskRow),
    usage,
    cost,
    answer: z.string().exactOptional(),
  },
  delivered: { delivered: json },
  session_start: {
    model: z.string(),
    cwd: z.string(),
    remoteTools: z.array(remoteTool).exactOptional(),
    remoteTimeoutMs: z.number().exactOptional(),
    options: sampling.exactOptional(),
  },
  awaiting_tool_execution: { calls: z.array(pendingCall) },
  session_end: {
    outcome: z.enum(['done', 'incomplete', 'error', 'cancelled', 'suspended']),
    reason: reason.exactOptional(),
    messages: z.array(message),
    usage,
    cost,
  },
  message_start: { role: z.enum(['user', 'assistant', 'tool']) },
  message_end: { message, kept: z.literal(false).exactOptional() },
  text_start: starts,
  text_delta: grows,
  text_end: ends,
  thinking_start: starts,
  thinking_delta: grows,
  thinking_end: ends,
  toolcall_start: { ...called, id: z.string(), name: z.string() },
  toolcall_delta: { ...called, delta: z.string() },
  toolcall_end: { ...called, call: json },
  tool_execution_start: { ...callLabel, args: json },
  tool_execution_delta: { callId: z.string(), name: z.string(), delta: z.string() },
  tool_execution_end: { ...callLabel, output: z.string(), outputSummary: z.string(), isError: z.boolean() },
  permission_request: {
    ...callLabel,
    requestId: z.string(),
    subject: z.string(),
    why: z.string(),
    field: askedField.exactOptional(),
  },
  permission_decision: { ...callLabel, requestId: z.string(), ...decided },
  network: {
    host: z.string(),
    port: z.int(),
    allowed: z.boolean(),
    reason: reason.exactOptional(),
    times: z.exactOptional(z.int()),
  },
  usage: { usage, total: usage, cost },
  retry: { retry: z.int(), retriesMax: z.int(), delayMs: z.number(), ...failed },
  model_fallback: { from: z.string(), to: z.string(), ...failed },
  attempt_discarded: { reason, failure: failure.exactOptional(), usage: usage.exactOptional() },
  compaction_start: { tokens: z.number(), reason: z.string() },
  compaction_end: { ok: z.boolean(), tokens: z.number(), failure: failure.exactOptional() },
  heartbeat: {},
  warning: { message: z.string() },
  done: { message },
  incomplete: failed,
  error: failed,
  cancelled: {},
};

/** When each type of event is emitted. */
export const EVENT_WORDS: Readonly<Record<EventType, string>> = {
  run_start: 'A run starts or resumes, with its settings',
  plan_proposed: 'A plan waits for approval',
  plan_comment: 'The user commented on a plan; the coordinator submits a new one',
  plan_ready: 'A plan is approved and its tasks are known',
  task_ready: 'All tasks that this one waits for have landed',
  task_start: 'An attempt at a task starts in its workspace',
  placement: 'An attempt is offered to hosts, taken by one, saved by it, or lost with it',
  task_end: 'An attempt ends; `again` says whether another follows',
  attempt_moved: 'An attempt lost its thread or host and resumes in another one; no attempt is counted',
  merge_start: 'The merge train takes the commit of a task',
  merge_end: 'The commit landed, conflicts, or fails a gate',
  gate_start: 'A gate starts on a tree',
  gate_end: 'A gate ended, with the end of its output',
  throttle_wait: 'A request waits for the provider’s limits',
  budget: 'Money or tokens were reserved or spent',
  tasks_reopened: 'The user retries tasks of the run',
  run_pause: 'The user paused the run, so that no attempt starts, or let it go on',
  task_message: 'The user sent a message to the worker of a task',
  task_message_delivered: 'The worker has the message',
  delivered: 'The result was delivered, also later by `drover merge`',
  run_end: 'The run ended',
  session_start: 'An agent starts or resumes',
  awaiting_tool_execution: 'The turn waits for results of remote tools',
  session_end: 'The turn ended, with its new messages and cost',
  message_start: 'A message starts',
  message_end: 'A message is complete',
  text_start: 'A block of text starts',
  text_delta: 'More of the text arrived',
  text_end: 'The block is complete, with its whole text',
  thinking_start: 'A block of thinking starts',
  thinking_delta: 'More of the thinking arrived',
  thinking_end: 'The block is complete, with its whole text',
  toolcall_start: 'The model begins a tool call',
  toolcall_delta: 'More of its arguments arrived',
  toolcall_end: 'The call is complete, with its arguments',
  tool_execution_start: 'drover starts the tool; durable before it runs',
  tool_execution_delta: 'The tool printed something',
  tool_execution_end: 'The tool ended, with its result',
  permission_request: 'A call waits for the user’s decision',
  permission_decision: 'The user or a rule decided',
  network: 'A command in the sandbox asked for a host',
  usage: 'A request ended, with its tokens and cost',
  retry: 'A request failed and is sent again after a delay',
  model_fallback: 'A model stays unavailable, and the next one of the list is asked',
  attempt_discarded: 'An answer is taken back: readers remove its text',
  compaction_start: 'The conversation is being shortened',
  compaction_end: 'The conversation was shortened, or could not be',
  heartbeat: 'The agent is alive while nothing else happens',
  warning: 'Something that the user should know',
  done: 'The turn ended with an answer',
  incomplete: 'The turn ended early, after some work',
  error: 'The turn ended before any work',
  cancelled: 'The user cancelled the turn before any work',
};

/** The names of the fields that a type of event has besides the envelope. */
export function eventFieldsOfApi(type: EventType): readonly string[] {
  return Object.keys(FIELDS[type]);
}

export type EventSchema = { readonly type: string; readonly name: string; readonly schema: z.ZodType };

/** The schema of each type of event, and its name in the document: `text_delta` is `TextDeltaEvent`. */
export const eventSchemas: readonly EventSchema[] = Object.entries(FIELDS).map(([type, fields]) => ({
  type,
  name: apiNameOfEvent(type),
  schema: z.looseObject({ type: z.literal(type), ...envelope, ...fields }),
}));

function apiNameOfEvent(type: string): string {
  const words = type.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join('')}Event`;
}
