// drover serve: runs with the same key share one throttle, so a rate limit of one slows the others.

import type { Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { RunDesk, says } from '../../support/run/run-desk.ts';
import { servedApp } from '../../support/serve/served-app.ts';

/** The first event that matches, unless the run ends before it. */
async function first(events: AsyncIterable<Recorded>, type: Recorded['type']): Promise<Recorded | undefined> {
  for await (const event of events) if (event.type === type || event.type === 'run_end') return event;
  return undefined;
}

test('a 429 in one run delays the requests of another run with the same key', async () => {
  const refused = { fault: { fault: 'status', status: 429, headers: { 'retry-after': '300' } } } as const;
  const desk = await RunDesk.with({ answers: [refused], otherwise: says('Nothing to do.') });
  const { home, repository: root } = desk;
  const env = { DROVER_HOME: home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  const client = await servedApp({ given: { cwd: root, env }, home, root, wishes: { model: 'anthropic/scripted' } });

  const one = await client.startRun({ goal: 'one', workers: 0 });
  await first(client.runEvents(one.id), 'run_end');
  const two = await client.startRun({ goal: 'two', workers: 0 });
  const waits = await first(client.runEvents(two.id), 'throttle_wait');
  await client.cancelRun(two.id);

  expect(waits).toMatchObject({
    type: 'throttle_wait',
    reason: expect.stringMatching(/^the provider asked to slow down/) as string,
  });
  expect(desk.server.requests.length).toBe(1);
});
