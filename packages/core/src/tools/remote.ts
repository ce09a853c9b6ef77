// Tools that are declared here and run elsewhere: by the program that embeds an agent, or by a client
// across a network. Their arguments are checked here all the same, so that whoever runs them gets what
// was declared.
//
// A declaration comes from outside: what can't be read, and what no provider would take, is refused when
// the tool is declared, and not when the first call comes.

import { fromJSONSchema, registry, type ZodType } from 'zod';
import { checkTimeout } from '../agent/calls/remote-calls.ts';
import type { RemoteTool } from '@drover/protocol/events';
import { UsageError } from '../errors.ts';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { type ParsedArguments, parseArguments } from './arguments.ts';
import type { Tool } from './tool.ts';

// What all providers take as a name.
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const DESCRIPTION_CHARS_MAX = 10_000;
const SCHEMA_CHARS_MAX = 100_000;

/** Throws UsageError where the declaration can't be used. */
export function remoteTool({ name, label, description, schema: given, timeoutMs }: RemoteTool): Tool {
  if (!NAME.test(name))
    throw new UsageError(
      `${JSON.stringify(name)} is no name for a tool: it has up to 64 letters, digits, _ and -, and begins with a letter`,
    );
  if (description.length > DESCRIPTION_CHARS_MAX)
    throw new UsageError(`the description of ${name} is longer than ${DESCRIPTION_CHARS_MAX} characters`);
  checkTimeout(timeoutMs);
  const schema = checkedSchema(name, given);
  const input = readSchema(name, schema);
  return {
    name,
    ...(label !== undefined && { label }),
    description,
    schema,
    remote: true,
    ...(timeoutMs !== undefined && { timeoutMs }),
    // Whoever runs it decides what it may do; rules by its name hold all the same.
    access: 'none',
    parse: (args) => parsed(input, args),
    subject: (value) => JSON.stringify(value),
    touches: () => [],
    alone: false,
    repeatable: false,
    final: false,
  };
}

function parsed(input: ZodType, args: Json): ParsedArguments {
  try {
    return parseArguments(input, args);
  } catch (error) {
    // A schema may refer to itself, and then a model may nest as deep as it likes.
    if (error instanceof RangeError) return { ok: false, problem: 'they are nested too deep' };
    throw error;
  }
}

/** A copy, so that nobody changes it afterwards. */
function checkedSchema(name: string, given: Json): JsonObject {
  const text = jsonOf(name, given);
  if (text.length > SCHEMA_CHARS_MAX)
    throw new UsageError(`the schema of ${name} is longer than ${SCHEMA_CHARS_MAX} characters`);
  const schema = JSON.parse(text) as Json;
  // Providers take nothing else for the arguments of a tool.
  if (!isJsonObject(schema) || schema['type'] !== 'object')
    throw new UsageError(`the schema of ${name} must be a JSON Schema with "type": "object"`);
  return schema;
}

function jsonOf(name: string, given: Json): string {
  try {
    return JSON.stringify(given) ?? 'null';
  } catch (error) {
    throw new UsageError(`the schema of ${name} is no JSON`, { cause: error });
  }
}

function readSchema(name: string, schema: JsonObject): ZodType {
  try {
    // A registry of its own, for what it says besides: the global one would remember every tool there ever was.
    return fromJSONSchema(schema, { registry: registry() });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`the schema of ${name} can't be checked against: ${why}`, { cause: error });
  }
}
