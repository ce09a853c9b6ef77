// Error messages that both OpenAI APIs share.

import { isList, isObject, shown, textOf, type Json, type JsonObject } from '../json.ts';
import type { Refusal } from '../wire/wire.ts';

const NAME_PATTERN = /^[a-zA-Z0-9_-]+$/;
const NAME_CHARS_MAX = 64;

export type Problem = {
  readonly message: string;
  readonly param?: string;
  readonly code?: string;
  readonly status?: number;
};

export function refusalOf(problem: Problem | undefined): Refusal | undefined {
  return problem && { status: 400, type: 'invalid_request_error', ...problem };
}

export function missing(param: string): Problem {
  return { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' };
}

export function wrongType(param: string, expected: string, value: Json | undefined): Problem {
  return {
    message: `Invalid type for '${param}': expected ${expected}, but got ${kindOf(value)} instead.`,
    param,
    code: 'invalid_type',
  };
}

export function emptyList(param: string): Problem {
  return {
    message: `Invalid '${param}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    param,
    code: 'empty_array',
  };
}

export function tooLong(param: string, max: number, length: number): Problem {
  return {
    message: `Invalid '${param}': string too long. Expected a string with maximum length ${max}, but got a string with length ${length} instead.`,
    param,
    code: 'string_above_max_length',
  };
}

export function unsupported(param: string, value: Json | undefined, supported: readonly string[]): Problem {
  const all = supported.map((name) => `'${name}'`);
  return {
    message: `Invalid value: '${shown(value)}'. Supported values are: ${all.slice(0, -1).join(', ')}, and ${all.at(-1)}.`,
    param,
    code: 'invalid_value',
  };
}

/** Checks a function as a tool; `at`: the path of its name and parameters. */
export function* functionProblems(tool: JsonObject, at: string): Generator<Problem> {
  const name = tool['name'];
  if (typeof name !== 'string') return yield missing(`${at}.name`);
  if (!NAME_PATTERN.test(name))
    yield {
      message: `Invalid '${at}.name': string does not match pattern. Expected a string that matches the pattern '${NAME_PATTERN.source}'.`,
      param: `${at}.name`,
      code: 'invalid_value',
    };
  if (name.length > NAME_CHARS_MAX) yield tooLong(`${at}.name`, NAME_CHARS_MAX, name.length);
  const schema = tool['parameters'];
  if (!isObject(schema)) return;
  const invalid = (what: string): Problem => ({
    message: `Invalid schema for function '${name}': ${what}`,
    param: `${at}.parameters`,
    code: 'invalid_function_parameters',
  });
  if (schema['type'] !== 'object')
    yield invalid(
      `schema must be a JSON Schema of 'type: "object"', got 'type: "${shown(schema['type'] ?? 'None')}"'.`,
    );
  if (tool['strict'] !== true) return;
  if (schema['additionalProperties'] !== false)
    yield invalid("In context=(), 'additionalProperties' is required to be supplied and to be false.");
  const required = isList(schema['required']) ? schema['required'] : [];
  const optional = isObject(schema['properties'])
    ? Object.keys(schema['properties']).find((key) => !required.includes(key))
    : undefined;
  if (optional !== undefined)
    yield invalid(
      `In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing '${optional}'.`,
    );
}

export function* nameProblems(names: readonly Json[]): Generator<Problem> {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined)
    yield {
      message: `Invalid 'tools': duplicate function name '${textOf(twice)}'. Function names must be unique.`,
      param: 'tools',
      code: 'invalid_value',
    };
}

function kindOf(value: Json | undefined): string {
  if (value === undefined || value === null) return 'null';
  if (isList(value)) return 'an array';
  return isObject(value) ? 'an object' : `a ${typeof value}`;
}
