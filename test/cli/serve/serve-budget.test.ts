// drover serve --budget: a session has one budget for its whole life, even if the server closes it while idle.

import { isLive } from '@drover/core/journal/sessions';
import { expect, test } from 'vitest';
import { RunDesk } from '../../support/run/run-desk.ts';
import { servedApp } from '../../support/serve/served-app.ts';
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
  await expect.poll(() => isLive(home, session.id), PATIENT).toBe(false);
  const second = await (await session.execute('two')).result();
  const { cost } = await session.snapshot();

  expect([done.outcome, second.outcome, second.reason]).toEqual(['done', 'error', expect.stringContaining('budget')]);
  expect([desk.server.requests.length, Math.floor((cost ?? 0) * 10)]).toEqual([1, 15]);
});
