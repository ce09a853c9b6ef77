// What a tool is, and how one is made and run.
//
// Whatever a tool does (throws, answers nothing, never ends, floods), running it gives one bounded
// output: the loop needs a result for every call, and no tool may bring it down.

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { catchall, never, type ZodMiniObject } from 'zod/mini';
import { type $ZodType, type output, toJSONSchema } from 'zod/v4/core';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { DroverError, ToolError } from '../errors.ts';
import { isJsonObject, type Json } from '@drover/protocol/json';
import type { ImagePart, ToolDefinition } from '@drover/protocol/messages';
import { type ParsedArguments, parseArguments } from './arguments.ts';
import { boundedText, OUTPUT_CHARS_MAX } from './output/capture.ts';

// How long a tool may take to stop once its signal says so, before it is left to itself. The shell
// needs a second to be sure that all it started is gone.
const STOP_GRACE_MS = 2_500;
const DETAILS_CHARS_MAX = 200_000;

/** Paths that rules deny to reading. */
export type Denied = {
  readonly patterns: readonly string[];
  /** `path` is relative to the workspace. */
  readonly matches: (path: string) => boolean;
};

/** What a tool may use of the world. */
export type ToolContext = {
  readonly cwd: string; // the workspace: every path resolves inside it
  readonly callId: string;
  readonly env: Readonly<Record<string, string>>; // for child processes: allow-listed, no provider keys
  readonly ignore?: readonly string[]; // patterns of files that searches leave out, as in .gitignore
  /** Paths that no tool may read, for tools that look at many files. */
  readonly denied?: Denied;
  readonly outputFolder: string; // where the whole of a long output is kept; made when needed
  /** Contains the commands that tools run; absent where they run outside. */
  readonly sandbox?: SandboxPolicy;
  readonly signal: AbortSignal;
};

/** The same before there is a call. */
export type TurnContext = Omit<ToolContext, 'callId' | 'signal'>;

/** How sure it is that a tool is called: the model is being asked, or it has begun to write a call. */
export type Likelihood = 'possible' | 'certain';

export type ToolEvent =
  | { readonly type: 'delta'; readonly delta: string }
  | {
      readonly type: 'complete';
      readonly output: string;
      readonly isError?: boolean;
      readonly details?: Json;
      readonly images?: readonly ImagePart[];
    };

export type ToolOutput = Omit<Extract<ToolEvent, { type: 'complete' }>, 'type'>;

/** What a call may touch, which decides what the permission rules say by default. */
export type Access = 'read' | 'write' | 'run' | 'none';

export type Tool = {
  readonly name: string;
  /** For people: views show it in place of the name. */
  readonly label?: string;
  readonly description: string;
  readonly schema: Json; // JSON Schema of the arguments, byte-stable
  readonly access: Access;
  /** Arguments as they came from the model -> input, or what is wrong with them, with the path. */
  readonly parse: (args: Json) => ParsedArguments;
  /** What permission rules match: a path, a command. */
  readonly subject: (input: Json) => string;
  /** The paths a call writes, normalised: two calls that share one must not overlap. */
  readonly touches: (input: Json) => readonly string[];
  /** True where no other call may run meanwhile. */
  readonly alone: boolean;
  /** True where running it twice does no harm, so that it may be run again after a crash. */
  readonly repeatable: boolean;
  /** True where a call of it that worked is the last thing the agent has to do. */
  readonly final: boolean;
  /** True where somebody else runs it: the call is handed out, and the session waits for its result. */
  readonly remote?: true;
  /** How long a remote call may wait for its result; as the session says unless told. */
  readonly timeoutMs?: number;
  /** Gets ready for a call, so that it starts sooner. Called often; must not throw. */
  readonly prepare?: (context: TurnContext, likelihood: Likelihood) => void;
  /** Absent for a remote tool, and for no other. */
  readonly execute?: (input: Json, context: ToolContext) => Promise<ToolOutput> | AsyncIterable<ToolEvent>;
};

/** `input` is a zod object, from `zod` or from `zod/mini`: its type, validator and JSON Schema are one. */
export type ToolDeclaration<Schema extends $ZodType> = {
  readonly name: string;
  /** For people: views show it in place of the name. */
  readonly label?: string;
  readonly description: string;
  readonly input: Schema;
  readonly access: Access;
  readonly subject: (input: output<Schema>) => string;
  readonly touches?: (input: output<Schema>) => readonly string[];
  readonly alone?: true;
  readonly repeatable?: true;
  readonly final?: true;
  readonly prepare?: Tool['prepare'];
  readonly run: (
    input: output<Schema>,
    context: ToolContext,
  ) => Promise<string | ToolOutput> | AsyncIterable<ToolEvent>;
};

export function defineTool<Schema extends $ZodType>(declaration: ToolDeclaration<Schema>): Tool {
  const input = closed(declaration.input);
  let schema: Json | undefined;
  return {
    name: declaration.name,
    ...(declaration.label !== undefined && { label: declaration.label }),
    description: declaration.description,
    access: declaration.access,
    alone: declaration.alone ?? false,
    repeatable: declaration.repeatable ?? false,
    final: declaration.final ?? false,
    ...(declaration.prepare !== undefined && { prepare: declaration.prepare }),
    // Made when first asked for: a command that sends no request should not pay for it.
    get schema() {
      schema ??= jsonSchemaOf(input);
      return schema;
    },
    parse: (args) => parseArguments(input, args),
    subject: (value) => declaration.subject(value as output<Schema>),
    touches: (value) => declaration.touches?.(value as output<Schema>) ?? [],
    execute(value, context) {
      const started = declaration.run(value as output<Schema>, context);
      return started instanceof Promise ? started.then(asToolOutput) : started;
    },
  };
}

/** What the model is told of a tool. */
export function definitionOf({ name, description, schema }: Pick<Tool, keyof ToolDefinition>): ToolDefinition {
  return { name, description, schema };
}

/** A tool that says nothing on the way and answers once. */
export function createSimpleTool<Schema extends $ZodType>(
  config: Omit<ToolDeclaration<Schema>, 'run'>,
  answer: (
    input: output<Schema>,
    context: ToolContext,
  ) => Promise<{ readonly output: string; readonly details?: Json }>,
): Tool {
  return defineTool({ ...config, run: answer });
}

/** Where the whole of a call's long output is kept. */
export function outputFile(context: Pick<ToolContext, 'callId' | 'outputFolder'>): string {
  return join(context.outputFolder, `${context.callId}.txt`);
}

/** Runs a call to its end. Throws only DroverError: drover could not do its part. Anything else is an output with `isError`. */
export async function runTool(
  tool: Tool,
  input: Json,
  context: ToolContext,
  onDelta: (delta: string) => void,
): Promise<ToolOutput> {
  let partial = '';
  const work = answerOf(tool, input, context, (delta) => {
    // Twice the bound, so that cutting happens seldom.
    if (partial.length > 2 * OUTPUT_CHARS_MAX) partial = partial.slice(-OUTPUT_CHARS_MAX);
    partial += delta;
    onDelta(delta);
  });
  const settled = new AbortController();
  const answer = await Promise.race([
    work.catch((error: unknown) => failedAnswer(tool.name, error)),
    deserted(tool.name, context.signal, settled.signal),
  ]);
  settled.abort();

  const output = answer.partial === true ? withPartial(partial, answer.output) : answer.output;
  return {
    output: await boundedText(output, outputFile(context)),
    ...(answer.isError === true && { isError: true }),
    ...(answer.details !== undefined && { details: answer.details }),
    ...(answer.images !== undefined && { images: answer.images }),
  };
}

/** `partial`: what was said on the way belongs to the output. */
type Answer = ToolOutput & { readonly partial?: true };

async function answerOf(
  tool: Tool,
  input: Json,
  context: ToolContext,
  onDelta: (delta: string) => void,
): Promise<Answer> {
  if (tool.execute === undefined) throw new ToolError(`${tool.name} is run by the client, not here`);
  const started: unknown = tool.execute(input, context);
  if (!isAsyncIterable(started)) return answerFrom(tool.name, await started);

  const events = started[Symbol.asyncIterator]();
  for (;;) {
    const { done, value: event } = await events.next();
    if (done === true) return { output: `${tool.name} ended without a result`, isError: true, partial: true };
    if (!isJsonObject(event)) continue;
    if (event['type'] === 'delta' && typeof event['delta'] === 'string') onDelta(event['delta']);
    if (event['type'] === 'complete') {
      // Not awaited: what a tool still does after its answer is its own affair.
      void Promise.resolve(events.return?.()).catch(() => undefined);
      return answerFrom(tool.name, event);
    }
  }
}

// What a tool gave back, of which only the type says that it is a ToolOutput.
function answerFrom(name: string, given: unknown): Answer {
  if (given === undefined || given === null) throw new ToolError(`${name} returned nothing`);
  if (!isOutputLike(given)) return { output: textFrom(name, given) };
  const details = jsonFrom(given.details);
  return {
    output: textFrom(name, given.output),
    ...(given.isError === true && { isError: true }),
    ...(details !== undefined && { details }),
    ...(given.images !== undefined && { images: given.images }),
  };
}

function textFrom(name: string, given: unknown): string {
  if (typeof given === 'string') return given;
  const json = stringified(given);
  if (json === undefined) throw new ToolError(`${name} returned something that is neither text nor JSON`);
  return json;
}

// Details are for views; ones that can't be told are left out rather than failing a call that worked.
function jsonFrom(details: unknown): Json | undefined {
  const json = details === undefined ? undefined : stringified(details);
  return json === undefined || json.length > DETAILS_CHARS_MAX ? undefined : (JSON.parse(json) as Json);
}

function stringified(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // Circular, or a BigInt.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

function failedAnswer(name: string, error: unknown): Answer {
  if (error instanceof DroverError) throw error;
  const text = error instanceof Error ? error.message : String(error);
  return { output: error instanceof ToolError ? text : `${name} failed: ${text}`, isError: true, partial: true };
}

// Settles only when the signal has asked and the tool has not listened.
async function deserted(name: string, signal: AbortSignal, settled: AbortSignal): Promise<Answer> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true, signal: settled });
  });
  await delay(STOP_GRACE_MS, undefined, { signal: settled }).catch(() => undefined);
  return { output: `${name} was interrupted, and did not stop`, isError: true, partial: true };
}

function withPartial(partial: string, problem: string): string {
  if (partial === '') return problem;
  return partial.endsWith('\n') ? partial + problem : `${partial}\n${problem}`;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function isOutputLike(value: unknown): value is { output: unknown } & Partial<Omit<ToolOutput, 'output'>> {
  return typeof value === 'object' && value !== null && 'output' in value;
}

// A misspelt optional argument that is silently dropped makes a call do something else than was
// asked, so an object that doesn't say what it does with unknown keys refuses them.
function closed(schema: $ZodType): $ZodType {
  const definition = schema._zod.def;
  if (definition.type !== 'object' || ('catchall' in definition && definition.catchall !== undefined)) return schema;
  return catchall(schema as ZodMiniObject, never());
}

function jsonSchemaOf(schema: $ZodType): Json {
  const { $schema: _, ...rest } = toJSONSchema(schema, { io: 'input' });
  return rest as Json;
}

function asToolOutput(answer: string | ToolOutput): ToolOutput {
  return typeof answer === 'string' ? { output: answer } : answer;
}
