// The same as examples/in-process/two-sides.ts, with the agent on a server: the server runs its own tools, and this
// program those that it has declared.
//
//   drover serve                                          in one terminal
//   node examples/over-http/two-sides.ts                  in another; an address may follow
//
// Every request and every event is written out here. For a program that only wants its tools run there is less
// to write: see examples/remote-tools/in-node.ts.

import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { DroverClient } from '@drover/client/client';
import type { RemoteResult, RemoteTool } from '@drover/client/wire';
import type { PendingCall } from '@drover/protocol/events';

// It has no code on the server: its calls are handed out, and the session waits for their results.
const priceTool: RemoteTool = {
  name: 'price_of',
  description: 'What an article costs, in euros.',
  schema: {
    type: 'object',
    properties: { article: { type: 'string' } },
    required: ['article'],
    additionalProperties: false,
  },
};

/** Here, where the prices are. */
async function executeRemoteTools(calls: readonly PendingCall[]): Promise<readonly RemoteResult[]> {
  return calls.map(({ callId, args }) => {
    const { article } = args as { article: string };
    return article === 'apple' ? { callId, output: '0.50' } : { callId, output: `no ${article} here`, isError: true };
  });
}

const baseUrl = process.argv[2] ?? 'http://127.0.0.1:7117';
const home = process.env['DROVER_HOME'] || join(homedir(), '.drover');
const token = (await readFile(join(home, 'server-token'), 'utf8')).trim();
const client = new DroverClient({ baseUrl, token });
const { id } = await client.createSession({ tools: [priceTool] });

// Execute and look at the events. The last one is the end of the execution.
let pendingToolCalls: readonly PendingCall[] = [];
let last = 0;
for await (const event of client.execute(id, { content: 'What do 3 apples cost, and what is in this folder?' })) {
  process.stdout.write(`${event.type}\n`);
  if (event.type === 'awaiting_tool_execution') pendingToolCalls = event.calls;
  last = event.seq;
}

if (pendingToolCalls.length > 0) {
  // Run what runs here.
  const toolResults = await executeRemoteTools(pendingToolCalls);

  // Hand in the results: with the last of them the session goes on by itself.
  await client.deliver(id, toolResults);
  for await (const event of client.events(id, { after: last })) {
    // It went on before we listened: what was said piece by piece is over, and the whole of it is kept.
    if (event.type === 'text_end') process.stdout.write(`${event.text}\n`);
    if (event.type !== 'session_end') continue;
    process.stdout.write(`${event.outcome}, ${event.usage.output} tokens\n`);
    break;
  }
  // Where the model calls more of them, the outcome is `suspended`, and so on.
}
