// A call's arguments, from the text in which a model wrote them.
//
// Models and servers write them in many ways. Nothing at all and `null` mean no arguments; an object
// inside a string inside JSON is unwrapped once. Whatever else is not one JSON object is a problem: the
// call is not run and the model is told. Nothing is repaired, since a guess may be a path or a command.

import { isJsonObject, type Json, type JsonObject } from '../../json.ts';
import { oneLine } from './loose.ts';

export type Arguments = { readonly args: JsonObject; readonly problem?: string };

const PROBLEM_CHARS_MAX = 240;
const EXCERPT_CHARS = 24;

export function parseArguments(text: string): Arguments {
  if (text.trim() === '') return { args: {} };
  try {
    const value = JSON.parse(text) as Json;
    const inner = typeof value === 'string' && value.trim() !== '' ? (JSON.parse(value) as Json) : value;
    return checked(inner, text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return problem(`the arguments are not one JSON object: ${error.message}, near ${excerpt(text, error.message)}`);
  }
}

function checked(value: Json, text: string): Arguments {
  if (value === null || value === '') return { args: {} };
  if (!isJsonObject(value)) return problem(`the arguments are not a JSON object but ${oneLine(text, 80)}`);
  // JSON may spell a NUL, but no path and no command can hold one.
  if (text.includes('u0000') && hasNul(value)) return problem('the arguments hold a NUL character');
  return { args: value };
}

function problem(message: string): Arguments {
  return { args: {}, problem: oneLine(message, PROBLEM_CHARS_MAX) };
}

/** The text round the place the parser names, or its end where the parser ran out of text. */
function excerpt(text: string, complaint: string): string {
  const at = Number(/position (\d+)/.exec(complaint)?.[1] ?? text.length);
  return JSON.stringify(text.slice(Math.max(0, at - EXCERPT_CHARS), at + EXCERPT_CHARS).toWellFormed());
}

// Not recursive, because a model can nest deeper than the stack.
function hasNul(root: Json): boolean {
  const waiting: Json[] = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value === 'string' && value.includes('\0')) return true;
    if (typeof value === 'object' && value !== null) {
      for (const [key, inner] of Object.entries(value)) waiting.push(key, inner as Json);
    }
  }
  return false;
}
