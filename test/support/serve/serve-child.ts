// A server in a separate process that tests kill: on a given port, or on one that it prints.
//
//   node serve-child.ts <home> <root> <model url> <port> <ledger>

import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineTool } from '@drover/core/tools/tool';
import { createServerApp } from '@drover/server/app';
import { httpHostsAt } from '@drover/server/http/guard';
import { listenForHttp } from '@drover/server/http/listen';
import { pageAsset } from '@drover/server/page/assets';
import { z } from 'zod';
import { hostOf, TOKEN } from './serve-host.ts';

const [home = '', root = '', modelUrl = '', wanted = '0', ledger = ''] = process.argv.slice(2);

/** A tool that logs its beginning and its end. */
const slow = (name: string) =>
  defineTool({
    name,
    description: 'Takes a moment.',
    input: z.object({}),
    access: 'none',
    subject: () => '',
    async run() {
      appendFileSync(ledger, `${name} begins\n`);
      await sleep(300);
      appendFileSync(ledger, `${name} ends\n`);
      return `${name} is done`;
    },
  });

/** A tool whose results are short for the model, and long for event readers. */
const loud = defineTool({
  name: 'loud',
  description: 'Loud.',
  input: z.object({}),
  access: 'none',
  subject: () => '',
  run: async () => ({ output: 'ok', details: 'x'.repeat(190_000) }),
});

const host = hostOf({
  home,
  root,
  modelUrl,
  tools: [slow('left'), slow('right'), loud],
  asks: [],
  diagnose: () => undefined,
});
let port = Number(wanted);
const app = createServerApp(host, { token: TOKEN, page: pageAsset, hosts: () => httpHostsAt('127.0.0.1', port) });
const listening = await listenForHttp(app, { address: '127.0.0.1', port });
port = listening.port;
process.stdout.write(`${port}\n`);
