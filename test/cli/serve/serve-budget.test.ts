// drover serve --budget: a session has one budget for its whole life, even if the server closes it while idle.

import { readFile } from 'node:fs/promises';
import { DroverClient } from '@drover/client/client';
import { isSessionLive } from '@drover/core/journal/sessions';
import { expect, test } from 'vitest';
import { RunDesk } from '../../support/run/run-desk.ts';
import { servedApp } from '../../support/serve/served-app.ts';
import { Program } from '../program.ts';
import { PATIENT } from './served.ts';

const MODEL = 'anthropic/claude-opus-4-1'; // $75 per million tokens of output
const LONG = { text: 'Long.', usage: { output: 20_000 } }; // $1.50

test('a session closed while idle resumes with the rest of its budget', async () => {
  const desk = await RunDesk.with({ answers: [LONG], otherwise: LONG });
  const { home, repository: root } = desk;
  const env = { DROVER_HOME: home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  const client = await servedApp({
    given: { cwd: root, env },
    home,
    root,
    wishes: { model: MODEL, budget: { usd: 1.6 } },
    bounds: { sessionIdleMs: 1 },
  });
  const session = await client.session({});
  const first = await session.execute('one');
  const done = await first.result();
  await expect.poll(() => isSessionLive(home, session.id), PATIENT).toBe(false);
  const second = await (await session.execute('two')).result();
  const { cost } = await session.snapshot();

  expect([done.outcome, second.outcome, second.reason]).toEqual(['done', 'error', expect.stringContaining('budget')]);
  expect([desk.server.requests.length, Math.floor((cost ?? 0) * 10)]).toEqual([1, 15]);
});

test('a request that kill -9 cut off counts against the budget of its session', async () => {
  const desk = await RunDesk.with({ otherwise: { text: 'Late.', delayMs: 600_000 } });
  const { home, repository: cwd } = desk;
  const env = { DROVER_HOME: home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  // The first request reserves 32,000 tokens of output, which cost $2.40.
  const serving = async (budget: string) => {
    const argv = ['serve', '--port', '0', '--json', '--model', MODEL, '--budget', budget];
    const program = new Program(argv, cwd, { env });
    await program.printed('\n');
    const { url, tokenFile } = JSON.parse(program.stdout) as { readonly url: string; readonly tokenFile: string };
    return { program, client: new DroverClient({ baseUrl: url, token: (await readFile(tokenFile, 'utf8')).trim() }) };
  };
  const first = await serving('2.55usd');
  const { id } = await first.client.createSession({});
  const asking = first.client.execute(id, { content: 'Go.' })[Symbol.asyncIterator]().next();
  await Promise.all([asking, desk.server.received(1)]);
  first.program.child.kill('SIGKILL');
  await first.program.ended();

  const { client } = await serving('2.55usd');
  for await (const event of client.events(id)) if (event.type === 'session_end') break;
  const { cost } = await client.snapshot(id);
  // The next server resumes the turn, and has no money left for a second request.
  expect([desk.server.requests.length, (cost ?? 0) > 2.4, (cost ?? 0) <= 2.55]).toEqual([1, true, true]);
}, 60_000);
