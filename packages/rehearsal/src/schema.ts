// The form of a script in a file. Imported only when there is a file to check: zod takes time to start.

import { z } from 'zod';
import { FAULTS, type FaultName, type FaultSpec, type PlainFaultName, type StreamFaultName } from './faults/fault.ts';
import type { Json, JsonObject } from './json.ts';
import type { Script } from './script.ts';
import { OVERFLOW_DIALECTS } from './strict/overflow.ts';

const json: z.ZodType<Json> = z.json();
const count = z.int().positive();
const amount = z.int().nonnegative();
const expression = z.string().check((context) => {
  try {
    RegExp(/^\/(.+)\/[a-z]*$/s.exec(context.value)?.[1] ?? context.value);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    context.issues.push({ code: 'custom', message: error.message, input: context.value });
  }
});
const headers = z.record(z.string(), z.string());

// ── faults ────────────────────────────────────────────────────────────────────────────────────

const STREAM_FAULTS = [
  'error-event',
  'failed',
  'cut',
  'reset',
  'silence',
  'pings-only',
  'comments-only',
  'not-json',
  'huge-event',
  'endless-line',
] as const satisfies readonly StreamFaultName[];

const NAMES = Object.keys(FAULTS) as FaultName[];
const isPlain = (name: FaultName): name is PlainFaultName =>
  name !== 'status' && name !== 'redirect' && !STREAM_FAULTS.some((other) => other === name);

const statusFault = z.strictObject({
  fault: z.literal('status'),
  status: z.int().min(200).max(599),
  headers: headers.exactOptional(),
  body: z.enum(['json', 'html', 'plain', 'empty']).exactOptional(),
  type: z.string().exactOptional(),
  message: z.string().exactOptional(),
  code: z.string().exactOptional(),
});
const redirectFault = z.strictObject({
  fault: z.literal('redirect'),
  location: z.url(),
  status: z.int().min(300).max(399).exactOptional(),
});
const streamFault = z.strictObject({
  fault: z.enum(STREAM_FAULTS),
  after: z.union([amount, z.literal('nothing')]).exactOptional(),
  type: z.string().exactOptional(),
  message: z.string().exactOptional(),
  bytes: count.exactOptional(),
  everyMs: count.exactOptional(),
});
const plainFault = z.strictObject({ fault: z.enum(NAMES.filter(isPlain)) });

const rule = {
  at: z.union([count, z.array(count)]).exactOptional(),
  every: count.exactOptional(),
  rate: z.number().min(0).max(1).exactOptional(),
  agent: z.string().exactOptional(),
};
const fault = z.discriminatedUnion('fault', [statusFault, redirectFault, streamFault, plainFault]);
const faultRule = z.discriminatedUnion('fault', [
  statusFault.extend(rule),
  redirectFault.extend(rule),
  streamFault.extend(rule),
  plainFault.extend(rule),
]);
const bareName = z.enum(NAMES.filter((name) => name !== 'status' && name !== 'redirect'));
const faultSpec: z.ZodType<FaultSpec> = z.union([bareName, fault]);

// ── answers ───────────────────────────────────────────────────────────────────────────────────

const args: z.ZodType<JsonObject> = z.record(z.string(), json);
const text = z.union([z.string(), z.strictObject({ repeat: z.string(), times: count })]);
const call = z.strictObject({ name: z.string(), args: args.exactOptional(), id: z.string().exactOptional() });
const when = z.strictObject({
  text: expression.exactOptional(),
  system: expression.exactOptional(),
  model: expression.exactOptional(),
  tool: z.string().exactOptional(),
  api: z.enum(['anthropic', 'openai', 'openai-chat']).exactOptional(),
  step: count.exactOptional(),
  turn: count.exactOptional(),
});
const answerPart = z.union([
  z.strictObject({ text }),
  z.strictObject({ thinking: z.string() }),
  z.strictObject({ redactedThinking: z.string() }),
  z.strictObject({ call }),
]);
const usage = z.strictObject({
  input: amount.exactOptional(),
  output: amount.exactOptional(),
  cacheRead: amount.exactOptional(),
  cacheWrite: amount.exactOptional(),
  reasoning: amount.exactOptional(),
});
const raw = z.strictObject({
  body: z.string(),
  contentType: z.string().exactOptional(),
  status: z.int().min(200).max(599).exactOptional(),
  headers: headers.exactOptional(),
});
const answer = z.strictObject({
  thinking: z.string().exactOptional(),
  redactedThinking: z.string().exactOptional(),
  text: text.exactOptional(),
  calls: z.array(call).exactOptional(),
  parts: z.array(answerPart).exactOptional(),
  stop: z.enum(['end', 'calls', 'length', 'refusal', 'filter', 'pause', 'context', 'failed']).exactOptional(),
  when: when.exactOptional(),
  times: count.exactOptional(),
  delayMs: amount.exactOptional(),
  tokensPerSecond: z.number().positive().exactOptional(),
  usage: usage.exactOptional(),
  fault: z.union([faultSpec, z.array(faultSpec)]).exactOptional(),
  raw: raw.exactOptional(),
});

// ── the script ────────────────────────────────────────────────────────────────────────────────

const part = {
  loop: z.boolean().exactOptional(),
  otherwise: answer.exactOptional(),
  order: z.enum(['requests', 'conversation']).exactOptional(),
};
const agent = z.strictObject({
  ...part,
  marker: expression.exactOptional(),
  assigned: expression.exactOptional(),
  answers: z.array(answer),
});
const cache = z.strictObject({
  enabled: z.boolean().exactOptional(),
  tokensMin: amount.exactOptional(),
  lookbackBlocks: count.exactOptional(),
});
const limits = z.strictObject({
  requests: count.exactOptional(),
  inputTokens: count.exactOptional(),
  outputTokens: count.exactOptional(),
  concurrency: count.exactOptional(),
  windowMs: count.exactOptional(),
});
const script = z.strictObject({
  ...part,
  answers: z.array(answer).exactOptional(),
  agents: z.record(z.string(), z.union([z.array(answer), agent])).exactOptional(),
  faults: z.array(faultRule).exactOptional(),
  seed: z.int().exactOptional(),
  strict: z.boolean().exactOptional(),
  keys: z.array(z.string()).exactOptional(),
  contextTokens: z.union([count, z.record(z.string(), count)]).exactOptional(),
  overflowDialect: z.enum(OVERFLOW_DIALECTS).exactOptional(),
  bodyBytesMax: count.exactOptional(),
  tooLargeAs: z.enum(['json', 'html']).exactOptional(),
  cache: cache.exactOptional(),
  limits: limits.exactOptional(),
  chunkChars: count.exactOptional(),
});

export const scriptSchema: z.ZodType<Script> = script;

/** Every field there is, to guess which one was meant. */
export const FIELD_NAMES: readonly string[] = [
  script,
  agent,
  answer,
  when,
  call,
  usage,
  raw,
  cache,
  limits,
  statusFault.extend(rule),
  redirectFault,
  streamFault,
].flatMap(({ shape }) => Object.keys(shape));

export const FAULT_NAMES: readonly string[] = NAMES;
