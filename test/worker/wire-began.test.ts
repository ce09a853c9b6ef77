// That an answer has begun is told over the wire as well, with its headers, and only while it matters.

import { MessageChannel } from 'node:worker_threads';
import { linkOver, serveTask } from '@drover/core/task/wire';
import { expect, onTestFinished, test } from 'vitest';
import { never } from '../support/agent.ts';
import { listener, provider } from '../support/task.ts';

test('the beginning of an answer reaches the run before its end, and nothing of it after', async () => {
  const heard: unknown[] = [];
  const { port1, port2 } = new MessageChannel();
  const admit = async () => ({
    outputTokensMax: 10,
    began: (headers: object) => void heard.push(headers),
    settle: () => void heard.push('settled'),
  });
  const served = serveTask(port1, listener({ admission: { admit } }).link, { onBegin: () => {}, onSign: () => {} });
  const { link, close } = linkOver({ port: port2, provider: { id: provider.id, limits: provider.limits } }, 1);
  onTestFinished(() => {
    close();
    served.close('ignored');
  });
  const admitted = await link.admission.admit({ inputTokens: 1, outputTokensMax: 10 }, never);
  admitted.began?.({ 'retry-after': '1' });
  admitted.settle({ input: 1, output: 1, cacheRead: 0, cacheWrite: 0 }, {});
  admitted.began?.({ late: 'yes' });
  await link.settled();
  expect(heard).toEqual([{ 'retry-after': '1' }, 'settled']);
});
