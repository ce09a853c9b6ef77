// Call arguments: parses the text that a model wrote into a JSON object.
//
// An empty text and `null` mean no arguments. An object inside a JSON string is unwrapped once. Anything else is a
// problem: the call does not run, and the model is told why. Nothing is repaired, because a guess could become a
// path or a command.

import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { looseTextOnOneLine } from './loose.ts';

export type Arguments = { readonly args: JsonObject; readonly problem?: string };

const PROBLEM_CHARS_MAX = 240;
const EXCERPT_CHARS = 24;
const DEPTH_MAX = 200;

export function parseWireArguments(text: string): Arguments {
  if (text.trim() === '') return { args: {} };
  try {
    const value = JSON.parse(text) as Json;
    const inner = typeof value === 'string' && value.trim() !== '' ? (JSON.parse(value) as Json) : value;
    return checkWireArguments(inner, text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return wireArgumentsProblem(
      `the arguments are not one JSON object: ${error.message}, near ${excerptOfWireArguments(text, error.message)}`,
    );
  }
}

function checkWireArguments(value: Json, text: string): Arguments {
  if (value === null || value === '') return { args: {} };
  if (!isJsonObject(value))
    return wireArgumentsProblem(`the arguments are not a JSON object but ${looseTextOnOneLine(text, 80)}`);
  const trouble = troubleInWireArguments(value);
  return trouble === undefined ? { args: value } : wireArgumentsProblem(trouble);
}

function wireArgumentsProblem(message: string): Arguments {
  return { args: {}, problem: looseTextOnOneLine(message, PROBLEM_CHARS_MAX) };
}

/** The text around the position that the parser names, or the end of the text if it names none. */
function excerptOfWireArguments(text: string, complaint: string): string {
  const at = Number(/position (\d+)/.exec(complaint)?.[1] ?? text.length);
  return JSON.stringify(text.slice(Math.max(0, at - EXCERPT_CHARS), at + EXCERPT_CHARS).toWellFormed());
}

// Rejects NUL characters, which no path or command can hold, and nesting that JSON.stringify cannot write back.
// Iterative, because deep nesting would overflow the stack here too.
function troubleInWireArguments(root: Json): string | undefined {
  const waiting: { readonly value: Json; readonly depth: number }[] = [{ value: root, depth: 1 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, depth } = next;
    if (typeof value === 'string' && value.includes('\0')) return 'the arguments hold a NUL character';
    if (typeof value !== 'object' || value === null) continue;
    if (depth > DEPTH_MAX) return `the arguments are nested more than ${DEPTH_MAX} deep`;
    for (const [key, inner] of Object.entries(value)) {
      waiting.push({ value: key, depth }, { value: inner as Json, depth: depth + 1 });
    }
  }
  return undefined;
}
