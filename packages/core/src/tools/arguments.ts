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

export function parseArguments(schema: $ZodType, args: Json): ParsedArguments {
  // Models stream no JSON for a call without arguments. The schema reports missing ones.
  const given = args === null || args === '' ? {} : args;
  const parsed = safeParse(schema, given);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => wording(issue, schema, given));
    return { ok: false, problem: listed(problems) };
  }
  // System calls reject a NUL in a path or command, and code that truncates at it would run something else.
  const withNul = pathsWithNul(parsed.data as Json, '');
  if (withNul.length > 0) {
    return { ok: false, problem: listed(withNul.map((path) => `${path}: contains a NUL character`)) };
  }
  return { ok: true, input: parsed.data as Json };
}

function listed(problems: readonly string[]): string {
  const more = problems.length - PROBLEMS_SHOWN_MAX;
  const shown = problems.slice(0, PROBLEMS_SHOWN_MAX).join('; ');
  return more > 0 ? `${shown}; and ${more} more` : shown;
}

function wording(issue: $ZodIssue, schema: $ZodType, args: Json): string {
  const path = issue.path.map(String).join('.') || 'arguments';
  const value = valueAt(args, issue.path);
  switch (issue.code) {
    case 'invalid_type':
      return value === undefined ? `${path}: required` : `${path}: expected ${issue.expected}, got ${kindOf(value)}`;
    case 'invalid_value':
      if (value === undefined) return `${path}: required`;
      return `${path}: expected ${issue.values.map((one) => JSON.stringify(one)).join(' or ')}, got ${quoted(value)}`;
    case 'too_small':
      return `${path}: expected ${issue.inclusive === false ? 'more than' : 'at least'} ${bound(issue.origin, issue.minimum)}, got ${sizeOf(value)}`;
    case 'too_big':
      return `${path}: expected ${issue.inclusive === false ? 'less than' : 'at most'} ${bound(issue.origin, issue.maximum)}, got ${sizeOf(value)}`;
    case 'unrecognized_keys':
      return `${path}: unknown ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}${known(issue, schema)}`;
    case 'invalid_format':
      return `${path}: expected ${issue.format}, got ${quoted(value)}`;
    case 'not_multiple_of':
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return `${path}: ${issue.message}`;
  }
}

function valueAt(args: Json, path: readonly PropertyKey[]): Json | undefined {
  let value: Json | undefined = args;
  for (const key of path) {
    if (Array.isArray(value)) value = value[Number(key)];
    else if (isJsonObject(value)) value = value[String(key)];
    else return undefined;
  }
  return value;
}

function kindOf(value: Json): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function quoted(value: Json | undefined): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text;
}

function bound(origin: string, limit: number | bigint): string {
  if (origin === 'string') return `${limit} characters`;
  return origin === 'array' ? `${limit} items` : String(limit);
}

function sizeOf(value: Json | undefined): string {
  return typeof value === 'string' || Array.isArray(value) ? String(value.length) : quoted(value);
}

// Lists the known arguments of the outermost object only: models misspell those most.
function known(issue: $ZodIssue, schema: $ZodType): string {
  const definition = schema._zod.def;
  if (issue.path.length > 0 || !('shape' in definition) || typeof definition.shape !== 'object') return '';
  const names = Object.keys(definition.shape ?? {});
  return names.length === 0 ? ' (there are no arguments)' : ` (known: ${names.join(', ')})`;
}

function pathsWithNul(value: Json, path: string): readonly string[] {
  if (typeof value === 'string') return value.includes('\0') ? [path || 'arguments'] : [];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => pathsWithNul(inner, path === '' ? key : `${path}.${key}`));
}
