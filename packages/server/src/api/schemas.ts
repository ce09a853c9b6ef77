// Schemas of bodies: they check requests and answers, and become the OpenAPI document.
//
// The client's wire.ts declares the types for both ends, and the compiler compares them with the schemas at the end of
// this file. Requests are closed: an unknown field is refused, because ignoring it would not do what the client asked.

import type * as wire from '@drover/client/wire';
import type { PendingCall } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { Json, JsonObject } from '@drover/protocol/json';
import type { Message } from '@drover/protocol/messages';
import type { TaskRow } from '@drover/protocol/run';
import { z } from 'zod';

const TEXT_CHARS_MAX = 2_000_000;
const PATH_CHARS_MAX = 4_096;
const WORD_CHARS_MAX = 256;
const TOOLS_MAX = 128;
const RESULTS_MAX = 128;
const MESSAGES_MAX = 1_000;
const WORKERS_MAX = 64;
const GATES_MAX = 32;
const PLANNED_MAX = 1_000;
const COMMENT_CHARS_MAX = 20_000;
const REMOTE_TIMEOUT_MS_MAX = 7 * 24 * 60 * 60_000;

const text = z.string().max(TEXT_CHARS_MAX);
const word = z.string().min(1).max(WORD_CHARS_MAX);
const path = z.string().min(1).max(PATH_CHARS_MAX);
// Bodies are parsed from JSON, and answers are written as JSON: they hold nothing else.
export const json = z.unknown() as unknown as z.ZodType<Json>;
const jsonObject = z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>;
const failure = z.looseObject({ kind: z.string() }) as unknown as z.ZodType<Failure>;

// ── what is asked ─────────────────────────────────────────────────────────────────────────────

export const remoteTool = z.strictObject({
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
  description: text,
  schema: jsonObject.describe('JSON Schema of its arguments'),
  timeoutMs: z
    .int()
    .positive()
    .max(REMOTE_TIMEOUT_MS_MAX)
    .exactOptional()
    .describe('How long a call may wait for its result; else remoteTimeoutMs'),
});

const openingMessage = z.strictObject({ role: z.enum(['user', 'assistant']), content: text.min(1) });

export const sampling = z.strictObject({
  temperature: z.number().min(0).max(2).exactOptional(),
  topP: z.number().positive().max(1).exactOptional(),
});

export const newSession = z.strictObject({
  model: word.exactOptional().describe('provider/name; else the server’s own'),
  cwd: path.exactOptional().describe('Inside the folder that is served; else that folder'),
  tools: z.array(remoteTool).max(TOOLS_MAX).exactOptional().describe('Tools that run on the client’s side'),
  remoteTimeoutMs: z.int().positive().max(REMOTE_TIMEOUT_MS_MAX).exactOptional(),
  messages: z.array(openingMessage).max(MESSAGES_MAX).exactOptional().describe('What was said before'),
  options: sampling.exactOptional().describe('For models that take them; others are refused with 400'),
});

export const executeRequest = z.strictObject({
  content: text.min(1),
  cancelPending: z.boolean().exactOptional().describe('Remote calls that wait are given up for it'),
  model: word.exactOptional().describe('Another model, from this turn on'),
});

export const toolResults = z.strictObject({
  results: z
    .array(z.strictObject({ callId: word, output: z.string(), isError: z.boolean().exactOptional() }))
    .min(1)
    .max(RESULTS_MAX),
});

export const permissionAnswer = z.strictObject({
  allowed: z.boolean(),
  always: z.boolean().exactOptional(),
  words: z
    .string()
    .max(COMMENT_CHARS_MAX)
    .exactOptional()
    .describe('With a no: words for the agent. With a yes to a question that has a field: its value'),
});

export const newRun = z.strictObject({
  goal: text.min(1),
  model: word.exactOptional(),
  cwd: path.exactOptional().describe('A repository inside the folder that is served'),
  workers: z.int().min(0).max(WORKERS_MAX).exactOptional(),
  gates: z.array(text.min(1)).max(GATES_MAX).exactOptional(),
  deliver: z.enum(['branch', 'merge', 'patch']).exactOptional(),
  budget: word.exactOptional().describe('5usd, 200ktok'),
  timeout: word.exactOptional().describe('30m'),
  approve: z.boolean().exactOptional().describe('Plans wait for an answer; else they run as they are'),
});

export const ticketRequest = z.strictObject({ ticket: word });
export const nothing = z.strictObject({});

// ── what is answered ──────────────────────────────────────────────────────────────────────────

export const usage = z.object({
  input: z.number(),
  output: z.number(),
  cacheRead: z.number(),
  cacheWrite: z.number(),
  estimated: z.literal(true).exactOptional(),
});

export const callLabel = {
  callId: z.string(),
  toolUseId: z.string(),
  callIndex: z.int(),
  index: z.int(),
  name: z.string(),
  summary: z.string(),
};

export const pendingCall = z.object({ ...callLabel, args: json, deadline: z.string() });

const textPart = z.object({ type: z.literal('text'), text: z.string() });
const imagePart = z.object({ type: z.literal('image'), mediaType: z.string(), data: z.string() });
const thinkingPart = z.object({ type: z.literal('thinking'), text: z.string() });
const callPart = z.object({
  type: z.literal('tool_call'),
  id: z.string(),
  name: z.string(),
  args: json,
  problem: z.string().exactOptional(),
});
const toolResult = z.object({
  id: z.string(),
  name: z.string(),
  output: z.string(),
  isError: z.boolean(),
  images: z.array(imagePart).exactOptional(),
});
const native = z.object({
  provider: z.string(),
  model: z.string(),
  items: z.array(
    z.union([z.object({ part: z.number(), payload: json }), z.object({ before: z.number(), payload: json })]),
  ),
});

export const message = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), content: z.array(z.union([textPart, imagePart])) }),
  z.object({
    role: z.literal('assistant'),
    content: z.array(z.discriminatedUnion('type', [textPart, thinkingPart, callPart])),
    stop: z.enum(['stop', 'length', 'tool_calls', 'refusal', 'error', 'aborted', 'pause']),
    usage,
    native: native.exactOptional(),
  }),
  z.object({ role: z.literal('tool'), results: z.array(toolResult) }),
]);

// The envelope is the one of all events; whose it is, is in either of two fields.
const openQuestion = z.looseObject({
  type: z.literal('permission_request'),
  seq: z.int(),
  requestId: z.string(),
  subject: z.string(),
  why: z.string(),
  ...callLabel,
}) as unknown as z.ZodType<wire.OpenQuestion>;

const sessionStatus = z.enum(['idle', 'running', 'awaiting_tool_execution']);

export const made = z.object({ id: z.string() });
export const resultsTaken = z.object({ status: sessionStatus, pending: z.array(pendingCall) });
export const standing = z.object({ status: sessionStatus });

export const sessionSnapshot = z.object({
  id: z.string(),
  seq: z.int().describe('The last event this tells of: where to listen on from'),
  status: sessionStatus,
  ending: z.enum(['done', 'incomplete', 'error', 'cancelled']).exactOptional(),
  model: z.string(),
  cwd: z.string(),
  title: z.string(),
  messages: z.array(message),
  partial: z
    .array(z.object({ part: z.int(), type: z.enum(['text', 'thinking']), text: z.string() }))
    .exactOptional()
    .describe('The answer in progress; its deltas behind `seq` are still to come'),
  tools: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      schema: jsonObject,
      timeoutMs: z.int().exactOptional(),
    }),
  ),
  pending: z.array(pendingCall),
  questions: z.array(openQuestion),
  usage,
  cost: z.number().exactOptional(),
});

const row = {
  id: z.string(),
  title: z.string(),
  model: z.string(),
  cwd: z.string(),
  state: z.string(),
  live: z.boolean(),
  waiting: z.int().describe('Questions and plans that this server waits for an answer to'),
  startedAt: z.string(),
  updatedAt: z.string(),
  cost: z.number().exactOptional(),
};

const sessionRow = z.object(row);
export const sessionList = z.object({ sessions: z.array(sessionRow) });

const runRow = z.object({ ...row, tasks: z.int(), landed: z.int() });
export const runList = z.object({ runs: z.array(runRow) });

export const taskRow = z.object({
  task: z.string(),
  title: z.string(),
  status: z.enum(['landed', 'done', 'failed', 'skipped', 'conflict', 'gate_failed', 'cancelled']),
  attempts: z.number(),
  files: z.array(z.string()),
  lines: z.object({ added: z.number(), removed: z.number() }).exactOptional(),
  commit: z.string().exactOptional(),
  branch: z.string().exactOptional(),
  usage,
  cost: z.number().exactOptional(),
  waits: z.number(),
  elapsedMs: z.number().exactOptional(),
  cached: z.literal(true).exactOptional(),
  summary: z.string().exactOptional(),
  reason: z.string().exactOptional(),
  failure: failure.exactOptional(),
});

const plannedTask = z.strictObject({
  id: z.string(),
  title: z.string(),
  prompt: z.string(),
  dependsOn: z.array(z.string()),
  files: z.array(z.string()),
  mode: z.enum(['write', 'read']),
  gates: z.array(z.string()).exactOptional(),
  model: z.string().exactOptional(),
});

export const runResume = z.strictObject({
  approve: z
    .boolean()
    .exactOptional()
    .describe('Plans wait for an answer; if absent: as before, and a plan that was declined or not answered waits'),
});
export const runRetry = z.strictObject({ ...runResume.shape, tasks: z.array(word).max(PLANNED_MAX).exactOptional() });
export const taskText = z.strictObject({ text: z.string().min(1).max(COMMENT_CHARS_MAX) });
export const runPause = z.strictObject({ paused: z.boolean() });
export const runMerge = z.strictObject({ deliver: z.enum(['branch', 'merge', 'patch']).exactOptional() });
export const planAnswer = z.strictObject({
  answer: z.enum(['run', 'stop', 'comment']),
  tasks: z.array(plannedTask).max(PLANNED_MAX).exactOptional().describe('With run: the plan as it was changed'),
  comment: z.string().min(1).max(COMMENT_CHARS_MAX).exactOptional().describe('With comment: words for the coordinator'),
});
export const runDelivered = z.object({
  delivered: z.object({
    deliver: z.enum(['branch', 'merge', 'patch']),
    commit: z.string(),
    branch: z.string().exactOptional(),
    patches: z.array(z.string()).exactOptional(),
    instead: z.string().exactOptional(),
    renamed: z.record(z.string(), z.string()).exactOptional(),
    next: z.string().exactOptional(),
  }),
});
export const runDiff = z.object({ patch: z.string() });

export const runSnapshot = z.object({
  ...runRow.shape,
  seq: z.int(),
  goal: z.string(),
  rows: z.array(taskRow),
  questions: z.array(openQuestion),
  plan: z.array(plannedTask).exactOptional().describe('A plan that waits for an answer'),
});

export const taskDiff = z.object({ task: z.string(), commit: z.string(), patch: z.string() });
export const tokenGiven = z.object({ token: z.string() });
export const health = z.object({ status: z.literal('ok'), version: z.string() });
export const serverInfo = z.object({
  version: z.string(),
  root: z.string().describe('The folder that is served'),
  model: z.string().exactOptional().describe('The default; absent if each session and run must name one'),
  models: z
    .array(
      z.object({
        model: z.string(),
        contextTokens: z.number(),
        price: z.object({ input: z.number(), output: z.number() }).exactOptional(),
      }),
    )
    .describe('Models of the catalog whose provider this server can ask; prices in US dollars per million tokens'),
});
export const document = z.looseObject({ openapi: z.string() });

export const problem = z.object({
  type: z.string().describe('A word for programs'),
  title: z.string().describe('What is the matter, in one sentence'),
  status: z.int(),
  detail: z.string().exactOptional(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).exactOptional(),
});

// ── both ends say the same ────────────────────────────────────────────────────────────────────

type Frozen<T> = T extends Json & object
  ? Json extends T
    ? T
    : FrozenFields<T>
  : T extends object
    ? FrozenFields<T>
    : T;
type FrozenFields<T> = T extends readonly (infer Each)[]
  ? readonly Frozen<Each>[]
  : { readonly [Key in keyof T]: Frozen<T[Key]> };

type Same<Schema extends z.ZodType, Type> = [Frozen<z.output<Schema>>] extends [Type]
  ? [Type] extends [Frozen<z.output<Schema>>]
    ? true
    : 'the schema misses something'
  : 'the schema lets something else through';

/** Accepts only `true`: the compiler compares its arguments, and no code uses it. */
type Checked<_ extends readonly true[]> = true;
/** @public Exported so that the compiler keeps it: a schema that differs from its wire type fails to compile. */
export type WireIsChecked = Checked<
  [
    Same<typeof newSession, wire.NewSession>,
    Same<typeof executeRequest, wire.ExecuteRequest>,
    Same<typeof toolResults, wire.ToolResults>,
    Same<typeof permissionAnswer, wire.PermissionAnswer>,
    Same<typeof newRun, wire.NewRun>,
    Same<typeof runResume, wire.RunResume>,
    Same<typeof runRetry, wire.RunRetry>,
    Same<typeof taskText, wire.TaskText>,
    Same<typeof runPause, wire.RunPause>,
    Same<typeof runMerge, wire.RunMerge>,
    Same<typeof planAnswer, wire.PlanAnswer>,
    Same<typeof runDelivered, wire.RunDelivered>,
    Same<typeof runDiff, wire.RunDiff>,
    Same<typeof made, wire.Made>,
    Same<typeof resultsTaken, wire.ResultsTaken>,
    Same<typeof pendingCall, PendingCall>,
    Same<typeof message, Message>,
    Same<typeof sessionSnapshot, wire.SessionSnapshot>,
    Same<typeof sessionRow, wire.SessionRow>,
    Same<typeof runRow, wire.RunRow>,
    Same<typeof taskRow, TaskRow>,
    Same<typeof runSnapshot, wire.RunSnapshot>,
    Same<typeof taskDiff, wire.TaskDiff>,
    Same<typeof serverInfo, wire.ServerInfo>,
    Same<typeof problem, wire.Problem>,
  ]
>;
