// drover worker: a host that works on tasks of runs on other machines.

import { UsageError } from '@drover/core/errors';
import { agentOptions } from '../session/agent-options.ts';
import { defineCommand, flagOption, listOption, parseNonEmpty, valueOption } from '../start/command.ts';
import { parseCount } from '../start/quantities.ts';

const SLOTS_DEFAULT = 4;
const SLOTS_MAX = 64;
const LABEL = /^[a-z0-9][a-z0-9-]{0,31}$/;

const { log, sandbox, net, writable } = agentOptions;

export const worker = defineCommand({
  options: {
    queue: valueOption('Hosts:', 'URL', 'Redis to take work from, such as redis://host:6379 (required)', parseNonEmpty),
    slots: valueOption('Hosts:', 'N', `Number of tasks to work on at once (default: ${SLOTS_DEFAULT})`, (text) =>
      parseCount(text, 1, SLOTS_MAX),
    ),
    label: listOption(
      'Hosts:',
      'LABEL',
      'Label for tasks that run only on hosts with it (repeatable)',
      parseWorkerLabel,
    ),
    fetch: flagOption(
      'Hosts:',
      "Fetch the history of a repository from its remote, with this machine's own credentials",
    ),
    name: valueOption('Hosts:', 'NAME', 'Name to show (default: the name of this machine)', parseNonEmpty),
    sandbox: { ...sandbox, about: 'Run commands in a sandbox if possible, always, or never (default: required)' },
    net,
    writable,
    log,
  },
  examples: [
    ['drover worker --queue redis://127.0.0.1:6379', 'Work on tasks of runs with this queue, four at a time'],
    [
      'drover worker --queue rediss://user:password@host:6380 --slots 16',
      'Over TLS; set DROVER_QUEUE_KEY on both sides',
    ],
    ['drover worker --queue redis://127.0.0.1:6379 --label gpu', 'Take tasks that need a gpu as well'],
  ],
  async run({ queue, slots = SLOTS_DEFAULT, label: labels, name, fetch: fetches, log: file, ...sandboxed }, io) {
    if (queue === undefined)
      throw new UsageError('say where the work is: drover worker --queue redis://127.0.0.1:6379');
    const { serveHost } = await import('../hosts/serve-host.ts');
    return serveHost(
      { ...sandboxed, queue, key: io.env['DROVER_QUEUE_KEY'], slots, labels, fetches, name, log: file },
      io,
    );
  },
});

function parseWorkerLabel(text: string): string {
  if (LABEL.test(text)) return text;
  throw new UsageError(`'${text}' is not a label: use lower-case letters, digits and -`);
}
