// One agent with two tools: the program runs one of them itself, and the other wherever it likes.
//
//   ANTHROPIC_API_KEY=… node examples/in-process/two-sides.ts
//
// The first execution ends when the model has called what runs elsewhere; the second begins with the results.

import type { RemoteResult } from '@drover/core/agent/calls/remote-calls';
import type { PendingCall } from '@drover/protocol/events';
import { createSession, execute } from '@drover/core/in-process';
import { remoteTool } from '@drover/core/tools/remote';
import { createSimpleTool } from '@drover/core/tools/tool';
import { z } from 'zod';

const calculateTool = createSimpleTool(
  {
    name: 'multiply',
    description: 'Multiply two numbers.',
    input: z.object({ a: z.number(), b: z.number() }),
    access: 'none',
    subject: ({ a, b }) => `${a} * ${b}`,
  },
  async ({ a, b }) => ({ output: `${a} * ${b} = ${a * b}`, details: { result: a * b } }),
);

// It has no code here: its calls are handed out, and the session waits for their results.
const priceTool = remoteTool({
  name: 'price_of',
  description: 'What an article costs, in euros.',
  schema: {
    type: 'object',
    properties: { article: { type: 'string' } },
    required: ['article'],
    additionalProperties: false,
  },
});

/** Somewhere else: in a browser, on a phone, in another company. */
async function executeRemoteTools(calls: readonly PendingCall[]): Promise<readonly RemoteResult[]> {
  return calls.map(({ callId, args }) => {
    const { article } = args as { article: string };
    return article === 'apple' ? { callId, output: '0.50' } : { callId, output: `no ${article} here`, isError: true };
  });
}

const session = createSession(
  'session-123',
  { messages: [], tools: [calculateTool, priceTool] },
  { model: 'anthropic/claude-sonnet-4-5', env: process.env },
);

// Execute and look at the events.
const stream = execute(session, { role: 'user', content: 'What do 3 apples cost, and what is 7 * 6?' });
for await (const event of stream) {
  process.stdout.write(`${event.type}\n`);
}

// What came of it, once the stream has ended.
const result = await stream.result();
if (result.status === 'awaiting_tool_execution') {
  // Run what runs elsewhere.
  const toolResults = await executeRemoteTools(result.pendingToolCalls);

  // Go on with the results.
  const resumeStream = execute(session, toolResults);
  for await (const event of resumeStream) {
    if (event.type === 'text_delta') process.stdout.write(event.delta);
  }

  const finalResult = await resumeStream.result();
  process.stdout.write(`\n${finalResult.status}, ${finalResult.usage.output} tokens, $${finalResult.cost}\n`);
  // Where the model calls more of them, the status is awaiting_tool_execution again, and so on.
}
