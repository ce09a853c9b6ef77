// Error messages that both OpenAI APIs share.

import {
  isRehearsalList,
  isRehearsalObject,
  showRehearsalValue,
  rehearsalText,
  type Json,
  type JsonObject,
} from '../json.ts';
import type { Refusal } from '../wire/wire.ts';

const NAME_PATTERN = /^[a-zA-Z0-9_-]+$/;
const NAME_CHARS_MAX = 64;

export type Problem = {
  readonly message: string;
  readonly param?: string;
  readonly code?: string;
  readonly status?: number;
};

export function strictRefusalOf(problem: Problem | undefined): Refusal | undefined {
  return problem && { status: 400, type: 'invalid_request_error', ...problem };
}

export function strictMissing(param: string): Problem {
  return { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' };
}

export function strictWrongType(param: string, expected: string, value: Json | undefined): Problem {
  return {
    message: `Invalid type for '${param}': expected ${expected}, but got ${strictKindOf(value)} instead.`,
    param,
    code: 'invalid_type',
  };
}

export function strictEmptyList(param: string): Problem {
  return {
    message: `Invalid '${param}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    param,
    code: 'empty_array',
  };
}

export function strictTooLong(param: string, max: number, length: number): Problem {
  return {
    message: `Invalid '${param}': string too long. Expected a string with maximum length ${max}, but got a string with length ${length} instead.`,
    param,
    code: 'string_above_max_length',
  };
}

export function strictUnsupported(param: string, value: Json | undefined, supported: readonly string[]): Problem {
  const all = supported.map((name) => `'${name}'`);
  return {
    message: `Invalid value: '${showRehearsalValue(value)}'. Supported values are: ${all.slice(0, -1).join(', ')}, and ${all.at(-1)}.`,
    param,
    code: 'invalid_value',
  };
}

/** Checks a function as a tool; `at`: the path of its name and parameters. */
export function* strictFunctionProblems(tool: JsonObject, at: string): Generator<Problem> {
  const name = tool['name'];
  if (typeof name !== 'string') return yield strictMissing(`${at}.name`);
  if (!NAME_PATTERN.test(name))
    yield {
      message: `Invalid '${at}.name': string does not match pattern. Expected a string that matches the pattern '${NAME_PATTERN.source}'.`,
      param: `${at}.name`,
      code: 'invalid_value',
    };
  if (name.length > NAME_CHARS_MAX) yield strictTooLong(`${at}.name`, NAME_CHARS_MAX, name.length);
  const schema = tool['parameters'];
  if (!isRehearsalObject(schema)) return;
  const invalid = (what: string): Problem => ({
    message: `Invalid schema for function '${name}': ${what}`,
    param: `${at}.parameters`,
    code: 'invalid_function_parameters',
  });
  if (schema['type'] !== 'object')
    yield invalid(
      `schema must be a JSON Schema of 'type: "object"', got 'type: "${showRehearsalValue(schema['type'] ?? 'None')}"'.`,
    );
  if (tool['strict'] !== true) return;
  if (schema['additionalProperties'] !== false)
    yield invalid("In context=(), 'additionalProperties' is required to be supplied and to be false.");
  const required = isRehearsalList(schema['required']) ? schema['required'] : [];
  const optional = isRehearsalObject(schema['properties'])
    ? Object.keys(schema['properties']).find((key) => !required.includes(key))
    : undefined;
  if (optional !== undefined)
    yield invalid(
      `In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing '${optional}'.`,
    );
}

export function* strictNameProblems(names: readonly Json[]): Generator<Problem> {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined)
    yield {
      message: `Invalid 'tools': duplicate function name '${rehearsalText(twice)}'. Function names must be unique.`,
      param: 'tools',
      code: 'invalid_value',
    };
}

function strictKindOf(value: Json | undefined): string {
  if (value === undefined || value === null) return 'null';
  if (isRehearsalList(value)) return 'an array';
  return isRehearsalObject(value) ? 'an object' : `a ${typeof value}`;
}
