// Served tools: tools of servers that drover is connected to, such as MCP servers.
//
// Guarantees
//   1. A server's schema never runs code here. Arguments are only checked to be an object; the server checks the rest.
//   2. A served tool is asked about unless a rule covers it, whatever the server says about itself.

import type { CallLabel } from '@drover/protocol/events';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import type { ToolDefinition } from '@drover/protocol/messages';
import { ToolError } from '../../errors.ts';
import type { ParsedArguments } from '../arguments.ts';
import { Deltas } from '../output/deltas.ts';
import { findServedTools } from './find-tools.ts';
import type { Tool, ToolContext, ToolEvent, ToolOutput } from '../tool.ts';

/** A served tool as data. Its definition is the model's view of it. */
export type ServedTool = ToolDefinition & {
  readonly server: string;
  /** Its name on the server. */
  readonly tool: string;
  /** The user declared its calls idempotent. */
  readonly repeatable: boolean;
  /** Requests declare it only after `find_tools` has found it. */
  readonly isDeferred: boolean;
};

export type ServedCall = {
  readonly label: CallLabel;
  readonly server: string;
  readonly tool: string;
  readonly args: JsonObject;
};

/** Calls a tool at its server. Throws ToolError if the server cannot be reached. */
export type CallServed = (
  call: ServedCall,
  listener: { readonly onDelta: (delta: string) => void },
  signal: AbortSignal,
) => Promise<ToolOutput>;

/** The served tools, and `find_tools` in front of them if some are deferred. */
export function servedTools(served: readonly ServedTool[], call: CallServed): readonly Tool[] {
  const deferred = served.filter(({ isDeferred }) => isDeferred);
  return [
    ...(deferred.length === 0 ? [] : [findServedTools(deferred)]),
    ...served.map((each) => servedTool(each, call)),
  ];
}

function servedTool(
  { name, description, schema, server, tool, repeatable, isDeferred }: ServedTool,
  call: CallServed,
): Tool {
  return {
    name,
    description,
    schema,
    served: { server, tool, isDeferred },
    access: 'run',
    parse: parseServedToolArguments,
    subject: () => `${server}.${tool}`,
    touches: () => [],
    alone: false,
    repeatable,
    final: false,
    execute: (input, context) => outputOfServedTool(call, { server, tool, args: input as JsonObject }, context),
  };
}

async function* outputOfServedTool(
  call: CallServed,
  { server, tool, args }: Omit<ServedCall, 'label'>,
  { label, signal }: ToolContext,
): AsyncGenerator<ToolEvent> {
  if (label === undefined) throw new ToolError('a served tool is called by an agent only');
  const deltas = new Deltas();
  const onDelta = (delta: string) => deltas.push(Buffer.from(delta));
  const answer = call({ label, server, tool, args }, { onDelta }, signal).finally(() => deltas.close());
  // A rejection is reported below, after the deltas.
  const settled = Promise.allSettled([answer]);
  for await (const delta of deltas) yield { type: 'delta', delta };
  await settled;
  yield { type: 'complete', ...(await answer) };
}

function parseServedToolArguments(args: Json): ParsedArguments {
  // Models stream no JSON for a call without arguments.
  const input = args === null || args === '' ? {} : args;
  return isJsonObject(input) ? { ok: true, input } : { ok: false, problem: 'they must be an object' };
}
