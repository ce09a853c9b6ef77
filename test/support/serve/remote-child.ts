// One process of a session with remote tools: it does one thing, reports it, and stays until it is killed. Run by
// remote-tools.test.ts.
//
//   node remote-child.ts <home> <server url> <ledger> '<input as JSON>'
//   node remote-child.ts <home> <server url> <ledger> deliver '<results as JSON>'

import { appendFileSync } from 'node:fs';
import { createSession, execute, type ExecuteInput } from '@drover/core/in-process';
import type { RemoteResult } from '@drover/core/agent/calls/remote-calls';
import { remoteTool } from '@drover/core/tools/remote';
import { defineTool } from '@drover/core/tools/tool';
import { z } from 'zod';

const [home = '', baseUrl = '', ledger = '', deed = '', results = '[]'] = process.argv.slice(2);

let begun = 0;
const both = Promise.withResolvers<void>();
const local = defineTool({
  name: 'local',
  description: 'Writes a line; two of them wait for each other.',
  input: z.object({ line: z.string() }),
  access: 'none',
  subject: ({ line }) => line,
  async run({ line }) {
    begun += 1;
    if (begun === 2) both.resolve();
    await both.promise;
    appendFileSync(ledger, `${line}\n`);
    return `wrote ${line}`;
  },
});
const remote = remoteTool({
  name: 'remote',
  description: 'Runs elsewhere.',
  schema: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
});

const say = (what: unknown): void => void process.stdout.write(`${JSON.stringify(what)}\n`);

const session = createSession(
  's',
  { tools: [local, remote], cwd: home },
  { model: 'anthropic/scripted', baseUrl, apiKey: 'test-key', home },
);
if (deed === 'deliver') {
  const opened = await session.open();
  say({ pending: await opened.deliver(JSON.parse(results) as RemoteResult[]) });
} else {
  const stream = execute(session, JSON.parse(deed) as ExecuteInput);
  for await (const event of stream) say(event);
  const { status, pendingToolCalls = [] } = await stream.result();
  say({ status, pending: pendingToolCalls });
}
setInterval(() => undefined, 60_000);
