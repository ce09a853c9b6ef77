// Defines tools and runs them.
//
// Guarantees
//   1. Every run of a tool gives one bounded output, even if the tool throws, returns nothing or floods.
//   2. A tool that ignores its abort signal is abandoned after a grace period.

import { join } from 'node:path';
import { catchall, never, type ZodMiniObject } from 'zod/mini';
import { type $ZodType, type output, toJSONSchema } from 'zod/v4/core';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { DroverError, ToolError } from '../errors.ts';
import type { CallLabel } from '@drover/protocol/events';
import { isJsonObject, type Json } from '@drover/protocol/json';
import type { ImagePart, ToolDefinition } from '@drover/protocol/messages';
import { type ParsedArguments, parseToolArguments } from './arguments.ts';
import { boundOutputText, OUTPUT_CHARS_MAX } from './output/capture.ts';
import { handled, pause } from '../promises.ts';

// Time that an aborted tool gets to stop before it is abandoned. The shell needs a second to end its processes.
const STOP_GRACE_MS = 2_500;
const DETAILS_CHARS_MAX = 200_000;

/** Paths that rules deny to read. */
export type Denied = {
  readonly patterns: readonly string[];
  /** `path` is relative to the workspace. */
  readonly matches: (path: string) => boolean;
};

/** Context of a call. */
export type ToolContext = {
  readonly cwd: string; // the workspace: every path resolves inside it
  readonly callId: string;
  readonly env: Readonly<Record<string, string>>; // for child processes: allow-listed, no provider keys
  readonly ignore?: readonly string[]; // patterns of files that searches skip, as in .gitignore
  /** Paths that no tool may read, for tools that read many files. */
  readonly denied?: Denied;
  readonly outputFolder: string; // stores the full text of long outputs; created when needed
  /** Sandbox of the commands that tools run; absent if they run without one. */
  readonly sandbox?: SandboxPolicy;
  readonly signal: AbortSignal;
  /** The call for views and questions; absent outside of an agent. */
  readonly label?: CallLabel;
};

/** Context of a turn, before there is a call. */
export type TurnContext = Omit<ToolContext, 'callId' | 'signal' | 'label'>;

/** How likely a call is: `possible` once a request was sent, `certain` once the model has begun a call. */
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

/** Kind of access, which selects the default permission. */
export type Access = 'read' | 'write' | 'run' | 'none';

export type Tool = {
  readonly name: string;
  /** Display name in views. */
  readonly label?: string;
  readonly description: string;
  readonly schema: Json; // JSON Schema of the arguments, byte-stable
  readonly access: Access;
  /** Turns the model's arguments into input, or into a problem with its path. */
  readonly parse: (args: Json) => ParsedArguments;
  /** Text that permission rules match: a path, a command. */
  readonly subject: (input: Json) => string;
  /** Normalized paths that a call writes. Calls that share a path do not overlap. */
  readonly touches: (input: Json) => readonly string[];
  /** True if no other call may run at the same time. */
  readonly alone: boolean;
  /** True if calls are idempotent, so that they may be repeated after a crash. */
  readonly repeatable: boolean;
  /** True if a successful call ends the turn. */
  readonly final: boolean;
  /** The server that runs the tool (see served.ts). Rules name it as `mcp(server.tool)`. */
  readonly served?: { readonly server: string; readonly tool: string; readonly isDeferred: boolean };
  /** True if a client runs the tool. The session waits for the result. */
  readonly remote?: true;
  /** Timeout of a remote call (default: that of the session). */
  readonly timeoutMs?: number;
  /** Prepares for a call, so that it starts sooner. Called often; must not throw. */
  readonly prepare?: (context: TurnContext, likelihood: Likelihood) => void;
  /** Absent only for remote tools. */
  readonly execute?: (input: Json, context: ToolContext) => Promise<ToolOutput> | AsyncIterable<ToolEvent>;
};

/** `input` is a zod object, from `zod` or `zod/mini`. It supplies the type, the validator and the JSON Schema. */
export type ToolDeclaration<Schema extends $ZodType> = {
  readonly name: string;
  /** Display name in views. */
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
  const input = closeToolSchema(declaration.input);
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
    // Lazy: a command that sends no request needs no schema.
    get schema() {
      schema ??= jsonSchemaOfTool(input);
      return schema;
    },
    parse: (args) => parseToolArguments(input, args),
    subject: (value) => declaration.subject(value as output<Schema>),
    touches: (value) => declaration.touches?.(value as output<Schema>) ?? [],
    execute(value, context) {
      const started = declaration.run(value as output<Schema>, context);
      return started instanceof Promise ? started.then(asToolOutputOf) : started;
    },
  };
}

/** Returns the part of a tool that requests declare. */
export function toolDefinitionOf({ name, description, schema }: Pick<Tool, keyof ToolDefinition>): ToolDefinition {
  return { name, description, schema };
}

/** Makes a tool without deltas, which returns one result. */
export function createSimpleTool<Schema extends $ZodType>(
  config: Omit<ToolDeclaration<Schema>, 'run'>,
  answer: (
    input: output<Schema>,
    context: ToolContext,
  ) => Promise<{ readonly output: string; readonly details?: Json }>,
): Tool {
  return defineTool({ ...config, run: answer });
}

/** Returns the path of the file for a call's full output. */
export function toolOutputFile(context: Pick<ToolContext, 'callId' | 'outputFolder'>): string {
  return join(context.outputFolder, `${context.callId}.txt`);
}

/** The context of one call, and the reader of its output while it runs. */
export type ToolCall = ToolContext & { readonly onDelta?: (delta: string) => void };

/** Runs a call to its end. Throws only DroverError, a failure of drover itself. Other errors become the output. */
export async function runTool(tool: Tool, input: Json, call: ToolCall): Promise<ToolOutput> {
  const { onDelta, ...context } = call;
  let partial = '';
  const take = (delta: string): void => {
    // Truncate only at twice the limit, so that it happens rarely.
    if (partial.length > 2 * OUTPUT_CHARS_MAX) partial = partial.slice(-OUTPUT_CHARS_MAX);
    partial += delta;
    onDelta?.(delta);
  };
  const work = toolAnswerOf(tool, input, { ...context, onDelta: take });
  const settled = new AbortController();
  const answer = await Promise.race([
    work.catch((error: unknown) => failedToolAnswer(tool.name, error)),
    desertTool(tool.name, context.signal, settled.signal),
  ]);
  settled.abort();

  const output = answer.partial === true ? toolErrorWithPartial(partial, answer.output) : answer.output;
  return {
    output: await boundOutputText(output, toolOutputFile(context)),
    ...(answer.isError === true && { isError: true }),
    ...(answer.details !== undefined && { details: answer.details }),
    ...(answer.images !== undefined && { images: answer.images }),
  };
}

/** `partial`: the deltas so far belong to the output. */
type Answer = ToolOutput & { readonly partial?: true };

async function toolAnswerOf(tool: Tool, input: Json, { onDelta, ...context }: ToolCall): Promise<Answer> {
  if (tool.execute === undefined) throw new ToolError(`${tool.name} is run by the client, not here`);
  const started: unknown = tool.execute(input, context);
  if (!isToolStream(started)) return toolAnswerFrom(tool.name, await started);

  const events = started[Symbol.asyncIterator]();
  for (;;) {
    const { done, value: event } = await events.next();
    if (done === true) return { output: `${tool.name} ended without a result`, isError: true, partial: true };
    if (!isJsonObject(event)) continue;
    if (event['type'] === 'delta' && typeof event['delta'] === 'string') onDelta?.(event['delta']);
    if (event['type'] === 'complete') {
      // Not awaited: a call is complete with its answer, even if the tool still cleans up.
      handled(Promise.resolve(events.return?.()));
      return toolAnswerFrom(tool.name, event);
    }
  }
}

// Checks the returned value at run time: a tool may not follow its type.
function toolAnswerFrom(name: string, given: unknown): Answer {
  if (given === undefined || given === null) throw new ToolError(`${name} returned nothing`);
  if (!isToolOutputLike(given)) return { output: toolTextFrom(name, given) };
  const details = toolJsonFrom(given.details);
  return {
    output: toolTextFrom(name, given.output),
    ...(given.isError === true && { isError: true }),
    ...(details !== undefined && { details }),
    ...(given.images !== undefined && { images: given.images }),
  };
}

function toolTextFrom(name: string, given: unknown): string {
  if (typeof given === 'string') return given;
  const json = stringifyToolValue(given);
  if (json === undefined) throw new ToolError(`${name} returned something that is neither text nor JSON`);
  return json;
}

// Details are for views. Invalid or oversized details are dropped and do not fail the call.
function toolJsonFrom(details: unknown): Json | undefined {
  const json = details === undefined ? undefined : stringifyToolValue(details);
  return json === undefined || json.length > DETAILS_CHARS_MAX ? undefined : (JSON.parse(json) as Json);
}

function stringifyToolValue(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // Circular, or a BigInt.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

function failedToolAnswer(name: string, error: unknown): Answer {
  if (error instanceof DroverError) throw error;
  const text = error instanceof Error ? error.message : String(error);
  return { output: error instanceof ToolError ? text : `${name} failed: ${text}`, isError: true, partial: true };
}

// Resolves only if the tool is still running a grace period after the abort.
async function desertTool(name: string, signal: AbortSignal, settled: AbortSignal): Promise<Answer> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true, signal: settled });
  });
  await pause(STOP_GRACE_MS, settled);
  return { output: `${name} was interrupted, and did not stop`, isError: true, partial: true };
}

function toolErrorWithPartial(partial: string, problem: string): string {
  if (partial === '') return problem;
  return partial.endsWith('\n') ? partial + problem : `${partial}\n${problem}`;
}

function isToolStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function isToolOutputLike(value: unknown): value is { output: unknown } & Partial<Omit<ToolOutput, 'output'>> {
  return typeof value === 'object' && value !== null && 'output' in value;
}

// Rejects unknown keys unless the schema says otherwise: a misspelt optional argument must not be dropped silently.
function closeToolSchema(schema: $ZodType): $ZodType {
  const definition = schema._zod.def;
  if (definition.type !== 'object' || ('catchall' in definition && definition.catchall !== undefined)) return schema;
  return catchall(schema as ZodMiniObject, never());
}

function jsonSchemaOfTool(schema: $ZodType): Json {
  const { $schema: _, ...rest } = toJSONSchema(schema, { io: 'input' });
  return rest as Json;
}

function asToolOutputOf(answer: string | ToolOutput): ToolOutput {
  return typeof answer === 'string' ? { output: answer } : answer;
}
