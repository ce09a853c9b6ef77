// drover serve: sessions and runs over HTTP, and a page that shows them.

import { UsageError } from '@drover/core/errors';
import { defineCommand, flagOption, listOption, parseNonEmpty, valueOption } from '../start/command.ts';
import { openDiagnostics } from '../diagnostics.ts';
import { runOptions } from '../run/run-options.ts';
import { agentOptions } from '../session/agent-options.ts';
import { servedRuleOptions } from '../permission/rule-options.ts';
import { parseCount } from '../start/quantities.ts';

const PORT_DEFAULT = 7117;
const PORT_MAX = 65_535;
const NAME = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i;

const { model, log, yes, sandbox, net, writable, steps, budget, mcp } = agentOptions;
const { queue, local } = runOptions;

export const serve = defineCommand({
  options: {
    port: valueOption('Address:', 'N', `Port to listen on; 0 takes a free one (default: ${PORT_DEFAULT})`, (text) =>
      parseCount(text, 0, PORT_MAX),
    ),
    address: valueOption(
      'Address:',
      'IP',
      'Address to listen on; any but the default may be reachable by others (default: 127.0.0.1)',
      parseNonEmpty,
    ),
    name: listOption('Address:', 'HOST', 'Additional host name that clients use', parseServedHostName),
    cwd: valueOption(
      'Input:',
      'DIR',
      'Folder in which sessions and runs work (default: the current folder)',
      parseNonEmpty,
    ),
    model,
    json: flagOption('Output:', 'Print the address as one line of JSON'),
    open: flagOption('Output:', 'Open the page in a browser: $BROWSER, xdg-open or open'),
    log,
    ...servedRuleOptions,
    yes,
    sandbox,
    net,
    writable,
    steps,
    budget,
    mcp,
    queue,
    local,
  },
  examples: [
    ['drover serve', 'Serve this folder and print the address of the page'],
    ['drover serve --open', 'The same, and open the page in a browser'],
    ['drover serve --port 0 --json', 'For programs: a free port, printed as JSON'],
    [
      `drover serve --model anthropic/claude-sonnet-4-5 --allow 'shell(pnpm test*)'`,
      'One model and one rule for all sessions',
    ],
  ],
  async run({ port = PORT_DEFAULT, address = '127.0.0.1', name, cwd, json, open, log: file, ...args }, io) {
    const diagnostics = await openDiagnostics(io, file);
    const { runServer: work } = await import('../serve/serving.ts');
    try {
      return await work(
        { cwd, address, port, names: name, json, open },
        {
          model: args.model,
          rules: [...args.allow, ...args.ask, ...args.deny],
          yes: args.yes,
          sandbox: args,
          steps: args.steps,
          budget: args.budget,
          mcp: args.mcp,
          hosts: args,
          diagnostics,
          io,
        },
      );
    } finally {
      await diagnostics.close();
    }
  },
});

function parseServedHostName(text: string): string {
  if (NAME.test(text)) return text.toLowerCase();
  throw new UsageError(`'${text}' is not a host name; leave out the scheme and the port`);
}
