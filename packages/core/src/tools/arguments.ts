// Checks the arguments of a call. Returns the tool's input, or a description of the problem for the model.
//
// Guarantees
//   1. Values are not coerced: the string "5" is not the number 5.
//   2. An unknown argument is a problem and is not dropped, because it is most often a misspelt one.

import { type $ZodIssue, type $ZodType, safeParse } from 'zod/v4/core';
import { isJsonObject, type Json } from '@drover/protocol/json';

const PROBLEMS_SHOWN_MAX = 5;
const VALUE_CHARS_MAX = 60;

export type ParsedArguments =
  | { readonly ok: true; readonly input: Json }
  | { readonly ok: false; readonly problem: string };

export function parseToolArguments(schema: $ZodType, args: Json): ParsedArguments {
  // Models stream no JSON for a call without arguments. The schema reports missing ones.
  const given = args === null || args === '' ? {} : args;
  const parsed = safeParse(schema, given);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => wordToolProblem(issue, schema, given));
    return { ok: false, problem: listToolProblems(problems) };
  }
  // System calls reject a NUL in a path or command, and code that truncates at it would run something else.
  const withNul = toolPathsWithNul(parsed.data as Json, '');
  if (withNul.length > 0) {
    return { ok: false, problem: listToolProblems(withNul.map((path) => `${path}: contains a NUL character`)) };
  }
  return { ok: true, input: parsed.data as Json };
}

function listToolProblems(problems: readonly string[]): string {
  const more = problems.length - PROBLEMS_SHOWN_MAX;
  const shown = problems.slice(0, PROBLEMS_SHOWN_MAX).join('; ');
  return more > 0 ? `${shown}; and ${more} more` : shown;
}

function wordToolProblem(issue: $ZodIssue, schema: $ZodType, args: Json): string {
  const path = issue.path.map(String).join('.') || 'arguments';
  const value = toolArgumentAt(args, issue.path);
  switch (issue.code) {
    case 'invalid_type':
      return value === undefined
        ? `${path}: required`
        : `${path}: expected ${issue.expected}, got ${kindOfToolArgument(value)}`;
    case 'invalid_value':
      if (value === undefined) return `${path}: required`;
      return `${path}: expected ${issue.values.map((one) => JSON.stringify(one)).join(' or ')}, got ${quoteToolArgument(value)}`;
    case 'too_small':
      return `${path}: expected ${issue.inclusive === false ? 'more than' : 'at least'} ${boundOfToolArgument(issue.origin, issue.minimum)}, got ${sizeOfToolArgument(value)}`;
    case 'too_big':
      return `${path}: expected ${issue.inclusive === false ? 'less than' : 'at most'} ${boundOfToolArgument(issue.origin, issue.maximum)}, got ${sizeOfToolArgument(value)}`;
    case 'unrecognized_keys':
      return `${path}: unknown ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}${knownToolArguments(issue, schema)}`;
    case 'invalid_format':
      return `${path}: expected ${issue.format}, got ${quoteToolArgument(value)}`;
    case 'not_multiple_of':
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return `${path}: ${issue.message}`;
  }
}

function toolArgumentAt(args: Json, path: readonly PropertyKey[]): Json | undefined {
  let value: Json | undefined = args;
  for (const key of path) {
    if (Array.isArray(value)) value = value[Number(key)];
    else if (isJsonObject(value)) value = value[String(key)];
    else return undefined;
  }
  return value;
}

function kindOfToolArgument(value: Json): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function quoteToolArgument(value: Json | undefined): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text;
}

function boundOfToolArgument(origin: string, limit: number | bigint): string {
  if (origin === 'string') return `${limit} characters`;
  return origin === 'array' ? `${limit} items` : String(limit);
}

function sizeOfToolArgument(value: Json | undefined): string {
  return typeof value === 'string' || Array.isArray(value) ? String(value.length) : quoteToolArgument(value);
}

// Lists the known arguments of the outermost object only: models misspell those most.
function knownToolArguments(issue: $ZodIssue, schema: $ZodType): string {
  const definition = schema._zod.def;
  if (issue.path.length > 0 || !('shape' in definition) || typeof definition.shape !== 'object') return '';
  const names = Object.keys(definition.shape ?? {});
  return names.length === 0 ? ' (there are no arguments)' : ` (known: ${names.join(', ')})`;
}

function toolPathsWithNul(value: Json, path: string): readonly string[] {
  if (typeof value === 'string') return value.includes('\0') ? [path || 'arguments'] : [];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => toolPathsWithNul(inner, path === '' ? key : `${path}.${key}`));
}
