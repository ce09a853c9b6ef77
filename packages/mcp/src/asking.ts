// A question of a server to the user (elicitation) goes the way of every question.
//
// A user answers yes or no. So a server gets the values of a form only if they follow from that: flags that are set,
// defaults, and the first of several choices never. A form that needs more is declined, and the user is told.

import type { ServedAgent } from '@drover/core/tools/served/tool-servers';
import type { ServedCall } from '@drover/core/tools/served/served';
import { newId } from '@drover/core/ids';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { visible } from './hostile/listed-tool.ts';
import type { Answered, Asked } from './sdk/connect.ts';

const FIELDS_MAX = 20;
const WORDS_CHARS_MAX = 1_000;
const FIELD_CHARS_MAX = 200;

export function askUser(
  agent: ServedAgent,
  { label, server, tool, args }: ServedCall,
): (asked: Asked, signal: AbortSignal) => Promise<Answered> {
  return async ({ message, schema }, signal) => {
    const form = formOf(schema);
    const words = visible(message, WORDS_CHARS_MAX);
    if (form === undefined) {
      const warning = `the MCP server ${server} asked for more than a yes, and was declined: ${words}`;
      agent.emit({ type: 'warning', message: warning });
      return { action: 'decline' };
    }
    const requestId = newId('ask');
    const subject = [`${server}.${tool} asks: ${words}`, ...form.lines].join('\n');
    const why = `the MCP server ${server} asks you`;
    agent.emit({ type: 'permission_request', requestId, subject, why, ...label });
    const decision = await agent.question({ requestId, tool: label.name, input: args, subject, why, label }, signal);
    if (decision === undefined) return { action: 'cancel' };
    agent.emit({ type: 'permission_decision', requestId, ...decision, ...label });
    if (!decision.allowed) return { action: decision.by === 'cancel' ? 'cancel' : 'decline' };
    return { action: 'accept', content: form.content };
  };
}

type Value = string | number | boolean;

type Form = { readonly content: Record<string, Value>; readonly lines: readonly string[] };

/** The values that a yes stands for; undefined if a required one does not follow from it. */
function formOf(schema: JsonObject): Form | undefined {
  const properties = isJsonObject(schema['properties']) ? Object.entries(schema['properties']) : [];
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  if (properties.length > FIELDS_MAX) return undefined;
  const content: Record<string, Value> = {};
  for (const [name, field] of properties) {
    const value = valueOf(field);
    if (value !== undefined) content[name] = value;
    else if (required.includes(name)) return undefined;
  }
  const lines = Object.entries(content).map(
    ([name, value]) => `${visible(name, FIELD_CHARS_MAX)}: ${visible(String(value), FIELD_CHARS_MAX)}`,
  );
  return { content, lines };
}

function valueOf(field: Json): Value | undefined {
  if (!isJsonObject(field)) return undefined;
  const { type, default: value } = field;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return type === 'boolean' ? true : undefined;
}
