// A session that is open in the server: whether it is in use.

import { join } from 'node:path';
import { mkdir } from 'node:fs/promises';
import { Desk } from '@drover/server/sessions/desk';
import { expect, onTestFinished, test } from 'vitest';
import { rehearsal, temporaryFolder } from '../support/agent.ts';
import { hostOf } from '../support/serve/serve-host.ts';

test('a session is in use until its one user is done', async () => {
  const home = await temporaryFolder();
  const root = join(home, 'root');
  await mkdir(root);
  const model = await rehearsal({});
  const diagnose = () => undefined;
  const host = hostOf({ home, root, modelUrl: model.baseUrlFor('anthropic'), tools: [], asks: [], diagnose });
  const hosted = await host.openSession({ id: 'ses_1', begin: { cwd: root, tools: [], messages: [] } });
  const desk = new Desk({ id: 'ses_1', hosted, model: undefined, diagnose, onClose: () => undefined });
  onTestFinished(() => desk.close());
  const working = Promise.withResolvers<void>();
  expect(desk.isInUse).toBe(false);
  const use = desk.use(() => working.promise);
  expect(desk.isInUse).toBe(true);
  working.resolve();
  await use;
  expect(desk.isInUse).toBe(false);
});
