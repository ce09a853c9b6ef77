// An MCP server over HTTP with a tool `ask` that asks the user for a name and an age, and says what it was told.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '@drover/protocol/json';
import { sdkServer } from './http/sdk-server.ts';

type Context = { readonly mcpReq: { readonly elicitInput: (params: object) => Promise<JsonObject> } };

/** Tools whose only one asks with these parameters. */
export function askingTools(params: object) {
  const ask = async (_: unknown, { mcpReq }: Context) => ({
    content: [{ type: 'text', text: JSON.stringify(await mcpReq.elicitInput(params)) }],
  });
  return { ask: ask as never };
}

const WHO = {
  mode: 'form',
  message: 'Who are you?',
  requestedSchema: {
    type: 'object',
    required: ['name'],
    properties: { name: { type: 'string' }, age: { type: 'integer', default: 7 } },
  },
};

export const ADA = JSON.stringify({ action: 'accept', content: { name: 'Ada', age: 7 } });

/** Flags with which drover uses the server, without asking about the call itself. */
export async function askingFlags(folder: string): Promise<readonly string[]> {
  const { url } = await sdkServer({ tools: askingTools(WHO) });
  const file = join(folder, 'asking.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { remote: { url } } }));
  return ['--mcp', file, '--allow', 'mcp'];
}
