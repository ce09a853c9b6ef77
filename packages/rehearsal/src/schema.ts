// The schema of a script in a file; its reader and its reference page follow from it. The type Script is wider: a
// script in TypeScript may hold functions and regular expressions.
//
// Imported only when there is a file to check: zod takes time to load.

import { z } from 'zod';
import { FAULTS, type FaultName, type FaultSpec, type PlainFaultName, type StreamFaultName } from './faults/fault.ts';
import type { Json, JsonObject } from './json.ts';
import type { Script } from './script.ts';
import { OVERFLOW_DIALECTS } from './strict/overflow.ts';

const json: z.ZodType<Json> = z.json().meta({ id: 'Json', description: 'Any JSON value.' });
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

function optionalScriptField<Schema extends z.ZodType>(schema: Schema, about: string) {
  return schema.exactOptional().describe(about);
}

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
const isPlainFaultInScript = (name: FaultName): name is PlainFaultName =>
  name !== 'status' && name !== 'redirect' && !STREAM_FAULTS.some((other) => other === name);

const statusFault = z.strictObject({
  fault: z.literal('status').describe('The response is an error.'),
  status: z.int().min(200).max(599).describe('Its HTTP status.'),
  headers: optionalScriptField(headers, 'Headers to add, such as retry-after.'),
  body: optionalScriptField(z.enum(['json', 'html', 'plain', 'empty']), 'The form of its body. Default: json.'),
  type: optionalScriptField(z.string(), 'The type of the error, in the words of the API.'),
  message: optionalScriptField(z.string(), 'The message of the error.'),
  code: optionalScriptField(z.string(), 'The code of the error.'),
});
const redirectFault = z.strictObject({
  fault: z.literal('redirect').describe('The response is a redirect.'),
  location: z.url().describe('Where it leads.'),
  status: optionalScriptField(z.int().min(300).max(399), 'Its HTTP status.'),
});
const streamFault = z.strictObject({
  fault: z.enum(STREAM_FAULTS).describe('What happens in the middle of the stream.'),
  after: optionalScriptField(
    z.union([amount, z.literal('nothing')]),
    'Number of pieces of content to send first; nothing: not even the start event.',
  ),
  type: optionalScriptField(z.string(), 'The type of the error, for error-event and failed.'),
  message: optionalScriptField(z.string(), 'The message of the error, for error-event and failed.'),
  bytes: optionalScriptField(count, 'Size of the event or line, for huge-event and endless-line.'),
  everyMs: optionalScriptField(count, 'Milliseconds between two pings or comments.'),
});
const plainFault = z.strictObject({
  fault: z.enum(NAMES.filter(isPlainFaultInScript)).describe('A fault without settings.'),
});

const rule = {
  at: optionalScriptField(z.union([count, z.array(count)]), 'The requests that it happens to, counted from 1.'),
  every: optionalScriptField(count, 'Happen to every nth request.'),
  rate: optionalScriptField(z.number().min(0).max(1), 'Happen by chance, from 0 to 1. The seed makes it repeatable.'),
  agent: optionalScriptField(z.string(), 'Count only the requests of this agent.'),
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
const text = z.union([
  z.string(),
  z.strictObject({ repeat: z.string().describe('The text to repeat.'), times: count.describe('How often.') }),
]);
const call = z.strictObject({
  name: z.string().describe('The tool.'),
  args: optionalScriptField(args, 'Its arguments. Default: none.'),
  id: optionalScriptField(z.string(), 'The id of the call. Default: one that looks like those of the API.'),
});
const when = z.strictObject({
  text: optionalScriptField(expression, 'A regular expression for the results or the user text since the last answer.'),
  system: optionalScriptField(expression, 'A regular expression for the system prompt.'),
  model: optionalScriptField(expression, 'A regular expression for the name of the model.'),
  tool: optionalScriptField(z.string(), 'A tool whose result is among the latest.'),
  api: optionalScriptField(z.enum(['anthropic', 'openai', 'openai-chat']), 'The API of the request.'),
  step: optionalScriptField(
    count,
    '1 for the first request after a user text, 2 for the one with its results, and so on.',
  ),
  turn: optionalScriptField(count, 'Number of user texts so far.'),
});
const answerPart = z.union([
  z.strictObject({ text: text.describe('A piece of text.') }),
  z.strictObject({ thinking: z.string().describe('A piece of thinking.') }),
  z.strictObject({ redactedThinking: z.string().describe('Thinking that the provider keeps to itself.') }),
  z.strictObject({ call: call.describe('A call of a tool.') }),
]);
const usage = z.strictObject({
  input: optionalScriptField(amount, 'Input tokens.'),
  output: optionalScriptField(amount, 'Output tokens.'),
  cacheRead: optionalScriptField(amount, 'Tokens read from the cache.'),
  cacheWrite: optionalScriptField(amount, 'Tokens written to the cache.'),
  reasoning: optionalScriptField(amount, 'Tokens of reasoning.'),
});
const raw = z.strictObject({
  body: z.string().describe('The body as it is sent.'),
  contentType: optionalScriptField(z.string(), 'Its content type.'),
  status: optionalScriptField(z.int().min(200).max(599), 'The HTTP status. Default: 200.'),
  headers: optionalScriptField(headers, 'Headers to add.'),
});
const answer = z
  .strictObject({
    thinking: optionalScriptField(z.string(), 'Text of the thinking before the answer.'),
    redactedThinking: optionalScriptField(z.string(), 'Thinking that the provider keeps to itself.'),
    text: optionalScriptField(text, 'The text of the answer; { repeat, times } makes a long one.'),
    calls: optionalScriptField(z.array(call), 'The tools that the model calls.'),
    parts: optionalScriptField(z.array(answerPart), 'Parts in any order, instead of the keys above.'),
    stop: optionalScriptField(
      z.enum(['end', 'calls', 'length', 'refusal', 'filter', 'pause', 'context', 'failed']),
      'Why the answer ends. Default: calls if there are any, otherwise end.',
    ),
    when: optionalScriptField(when, 'Conditions. The answer is given whenever all of them hold.'),
    times: optionalScriptField(count, 'How often an answer with conditions is given. Default: always.'),
    delayMs: optionalScriptField(amount, 'Milliseconds before the response begins.'),
    tokensPerSecond: optionalScriptField(z.number().positive(), 'Speed of the stream. Default: at once.'),
    usage: optionalScriptField(usage, 'The token counts to report. Default: counted from the text.'),
    fault: optionalScriptField(
      z.union([faultSpec, z.array(faultSpec)]),
      'Faults of this answer, by name or with settings.',
    ),
    raw: optionalScriptField(raw, 'A response served as it stands, in place of everything else.'),
  })
  .meta({ id: 'Answer', description: 'One answer of the model.' });

// ── the script ────────────────────────────────────────────────────────────────────────────────

const part = {
  loop: optionalScriptField(z.boolean(), 'Begin again when the ordered answers have run out.'),
  otherwise: optionalScriptField(answer, 'Given when no other answer fits.'),
  order: optionalScriptField(
    z.enum(['requests', 'conversation']),
    'requests: the nth request gets the nth answer. conversation: the number of assistant messages in the request decides. Default: requests.',
  ),
};
const agent = z.strictObject({
  ...part,
  marker: optionalScriptField(
    expression,
    'A regular expression for the system prompt and the first user text. Default: the name of the agent as a word.',
  ),
  assigned: optionalScriptField(
    expression,
    'Instead of a marker: a regular expression for any user text, from which on the conversation is this agent’s.',
  ),
  answers: z.array(answer).describe('The answers of the agent.'),
});
const cache = z.strictObject({
  enabled: optionalScriptField(z.boolean(), 'Default: true.'),
  tokensMin: optionalScriptField(amount, 'Shortest prefix that is cached.'),
  lookbackBlocks: optionalScriptField(count, 'Number of blocks before a breakpoint that are compared.'),
});
const limits = z.strictObject({
  requests: optionalScriptField(count, 'Requests in a window.'),
  inputTokens: optionalScriptField(count, 'Input tokens in a window.'),
  outputTokens: optionalScriptField(count, 'Output tokens in a window.'),
  concurrency: optionalScriptField(count, 'Requests at the same time.'),
  windowMs: optionalScriptField(count, 'Length of a window. Default: a minute.'),
});
const script = z.strictObject({
  answers: optionalScriptField(z.array(answer), 'For every request that belongs to no named agent.'),
  agents: optionalScriptField(z.record(z.string(), z.union([z.array(answer), agent])), 'Answers by agent.'),
  ...part,
  faults: optionalScriptField(z.array(faultRule), 'Faults of the server, and the requests that they happen to.'),
  seed: optionalScriptField(z.int(), 'Makes faults with a rate the same in every run.'),
  strict: optionalScriptField(z.boolean(), 'false accepts requests that the real APIs refuse. Default: true.'),
  keys: optionalScriptField(z.array(z.string()), 'The keys that are accepted. Default: every key, and none is needed.'),
  contextTokens: optionalScriptField(
    z.union([count, z.record(z.string(), count)]),
    'The longest prompt, for all models or by model. Default: no limit.',
  ),
  overflowDialect: optionalScriptField(
    z.enum(OVERFLOW_DIALECTS),
    'How the refusal of a prompt that is too long is worded.',
  ),
  bodyBytesMax: optionalScriptField(count, 'The largest request body.'),
  tooLargeAs: optionalScriptField(z.enum(['json', 'html']), 'The form of the refusal of a body that is too large.'),
  cache: optionalScriptField(cache, 'The prompt cache.'),
  limits: optionalScriptField(limits, 'Rate limits, each per window.'),
  chunkChars: optionalScriptField(count, 'Number of characters in a streamed piece of text.'),
});

/** A bare list stands for a script with these answers and nothing else. */
export const scriptSchema = z.union([script, z.array(answer).transform((answers): Script => ({ answers }))]);
