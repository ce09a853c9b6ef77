// Tools of this machine for an agent on another: the server thinks, this program looks.
//
//   drover serve                                          in one terminal
//   node examples/remote-tools/in-node.ts "How is this machine?"     in another; an address may follow
//
// What the model calls is run here, side by side, each call once; a lost connection, or a server that is started
// again, changes nothing of that.

import { readFile } from 'node:fs/promises';
import { freemem, homedir, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { DroverClient } from '@drover/client/client';
import type { ClientTools } from '@drover/client/remote-calls';

const NO_ARGUMENTS = { type: 'object', properties: {}, additionalProperties: false };

const tools: ClientTools = {
  memory: {
    description: 'How much memory this machine has, and how much of it is free.',
    schema: NO_ARGUMENTS,
    run: () => `${Math.round(freemem() / 2 ** 20)} of ${Math.round(totalmem() / 2 ** 20)} MB are free`,
  },
  load: {
    description: 'How busy this machine was in the last 1, 5 and 15 minutes.',
    schema: NO_ARGUMENTS,
    run: () =>
      loadavg()
        .map((load) => load.toFixed(2))
        .join(', '),
  },
};

const [prompt = 'How is this machine?', baseUrl = 'http://127.0.0.1:7117'] = process.argv.slice(2);
const home = process.env['DROVER_HOME'] || join(homedir(), '.drover');
const token = (await readFile(join(home, 'server-token'), 'utf8')).trim();
const client = new DroverClient({ baseUrl, token });

const session = await client.session({ tools });
const turn = await session.execute(prompt);
for await (const event of turn) {
  if (event.type === 'awaiting_tool_execution')
    for (const { name } of event.calls) process.stdout.write(`looking at ${name}\n`);
}
const { outcome, text } = await turn.result();
process.stdout.write(`${text}\n`);
process.exitCode = outcome === 'done' ? 0 : 1;
