// Remote tools: declared here, run by the program that embeds the agent or by a client over the network.
//
// Guarantees
//   1. Arguments are checked here against the declared schema before the call is sent out.
//   2. A declaration that is invalid, or that providers would reject, is refused when the tool is declared.

import { fromJSONSchema, registry, type ZodType } from 'zod';
import { checkRemoteTimeout } from '../agent/calls/remote-calls.ts';
import type { RemoteTool } from '@drover/protocol/events';
import { UsageError } from '../errors.ts';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { type ParsedArguments, parseToolArguments } from './arguments.ts';
import type { Tool } from './tool.ts';

// Names that all providers accept.
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const DESCRIPTION_CHARS_MAX = 10_000;
const SCHEMA_CHARS_MAX = 100_000;

/** Makes a tool from a declaration; throws UsageError if it is invalid. */
export function remoteTool({ name, label, description, schema: given, timeoutMs }: RemoteTool): Tool {
  if (!NAME.test(name))
    throw new UsageError(
      `${JSON.stringify(name)} is no name for a tool: it has up to 64 letters, digits, _ and -, and begins with a letter`,
    );
  if (description.length > DESCRIPTION_CHARS_MAX)
    throw new UsageError(`the description of ${name} is longer than ${DESCRIPTION_CHARS_MAX} characters`);
  checkRemoteTimeout(timeoutMs);
  const schema = checkRemoteToolSchema(name, given);
  const input = readRemoteToolSchema(name, schema);
  return {
    name,
    ...(label !== undefined && { label }),
    description,
    schema,
    remote: true,
    ...(timeoutMs !== undefined && { timeoutMs }),
    // The client decides what the tool may do. Rules with its name still apply.
    access: 'none',
    parse: (args) => parseRemoteToolInput(input, args),
    subject: (value) => JSON.stringify(value),
    touches: () => [],
    alone: false,
    repeatable: false,
    final: false,
  };
}

function parseRemoteToolInput(input: ZodType, args: Json): ParsedArguments {
  try {
    return parseToolArguments(input, args);
  } catch (error) {
    // A recursive schema lets a model nest arguments without limit.
    if (error instanceof RangeError) return { ok: false, problem: 'they are nested too deep' };
    throw error;
  }
}

/** Returns a checked copy, which the caller cannot change afterwards. */
function checkRemoteToolSchema(name: string, given: Json): JsonObject {
  const text = remoteToolJson(name, given);
  if (text.length > SCHEMA_CHARS_MAX)
    throw new UsageError(`the schema of ${name} is longer than ${SCHEMA_CHARS_MAX} characters`);
  const schema = JSON.parse(text) as Json;
  // Providers require an object schema for the arguments of a tool.
  if (!isJsonObject(schema) || schema['type'] !== 'object')
    throw new UsageError(`the schema of ${name} must be a JSON Schema with "type": "object"`);
  return schema;
}

function remoteToolJson(name: string, given: Json): string {
  try {
    return JSON.stringify(given) ?? 'null';
  } catch (error) {
    throw new UsageError(`the schema of ${name} is no JSON`, { cause: error });
  }
}

function readRemoteToolSchema(name: string, schema: JsonObject): ZodType {
  try {
    // Use a separate registry for metadata: the global one would keep every tool in memory.
    return fromJSONSchema(schema, { registry: registry() });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`the schema of ${name} can't be checked against: ${why}`, { cause: error });
  }
}
