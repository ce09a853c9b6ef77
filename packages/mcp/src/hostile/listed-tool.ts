// The tools that a server lists, as far as they can be used.
//
// Guarantees
//   1. A tool that cannot be used does not hide another one.
//   2. Names, descriptions, schemas and the number of tools are bounded.
//   3. Annotations and output schemas are dropped. A server's word about itself widens no right.

import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { problemOfHostileSchema } from './schema.ts';

const TOOLS_MAX = 500;
const LEFT_OUT_MAX = 20;
const DESCRIPTION_CHARS_MAX = 4_000;
const NAME = /^[A-Za-z0-9_./-]{1,128}$/;
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

type ListedTool = { readonly name: string; readonly description: string; readonly schema: JsonObject };

type LeftOut = { readonly name: string; readonly why: string };

export type Listed = { readonly tools: readonly ListedTool[]; readonly leftOut: readonly LeftOut[] };

export function cleanListedTools(given: Json | undefined): Listed {
  if (!Array.isArray(given)) return { tools: [], leftOut: [{ name: 'all', why: 'the list of tools is no list' }] };
  const tools = new Map<string, ListedTool>();
  const leftOut: LeftOut[] = [];
  for (const each of given) {
    const found = tools.size < TOOLS_MAX ? cleanListedTool(each, tools) : `at most ${TOOLS_MAX} tools are taken`;
    if (typeof found !== 'string') tools.set(found.name, found);
    else if (leftOut.length < LEFT_OUT_MAX) leftOut.push({ name: cleanToolName(each), why: found });
  }
  return { tools: [...tools.values()], leftOut };
}

/** The tool, or why it cannot be used. */
function cleanListedTool(given: Json, known: ReadonlyMap<string, ListedTool>): ListedTool | string {
  if (!isJsonObject(given)) return 'it is no object';
  const { name, description, inputSchema } = given;
  if (typeof name !== 'string' || !NAME.test(name)) return 'its name is not made of letters, digits, _, -, . and /';
  if (known.has(name)) return 'there is another one of this name';
  const problem = problemOfHostileSchema(inputSchema);
  if (problem !== undefined) return problem;
  return { name, description: cleanVisibleText(description ?? ''), schema: inputSchema as JsonObject };
}

function cleanToolName(given: Json): string {
  const name = isJsonObject(given) ? given['name'] : undefined;
  return cleanVisibleText(typeof name === 'string' ? name.slice(0, 80) : '') || 'a tool without a name';
}

/** Text of a server without characters that a reader would not see, at a bounded length. */
export function cleanVisibleText(given: Json, charsMax = DESCRIPTION_CHARS_MAX): string {
  const text = (typeof given === 'string' ? given : '')
    .slice(0, 2 * charsMax)
    .replaceAll(UNSEEN, '')
    .toWellFormed();
  return text.length > charsMax ? `${text.slice(0, charsMax).toWellFormed()}…` : text;
}
