// The start of an answer is reported to its admission, with its headers, while it matters.

import { MessageChannel } from 'node:worker_threads';
import type { ModelEvent, ModelRequest } from '@drover/protocol/model';
import { linkOver, serveTask } from '@drover/core/task/wire';
import { expect, onTestFinished, test } from 'vitest';
import { never } from '../support/agent.ts';
import { listener } from '../support/task.ts';

const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const REQUEST: ModelRequest = {
  model: 'm',
  system: '',
  tools: [],
  messages: [],
  outputTokensMax: 10,
  cacheKey: 'k',
};
const FINISHED: ModelEvent = {
  type: 'finished',
  message: { role: 'assistant', content: [], stop: 'stop', usage: NOTHING },
  notes: { ignored: 0, headers: {} },
};

test('the start of an answer is reported once, to its own admission', async () => {
  const heard: string[] = [];
  const { port1, port2 } = new MessageChannel();
  let leaves = 0;
  const admit = async () => {
    const name = `leave ${++leaves}`;
    return {
      outputTokensMax: 10,
      began: (headers: Readonly<Record<string, string>>) => void heard.push(`${name} began: ${headers['retry-after']}`),
      settle: () => void heard.push(`${name} settled`),
    };
  };
  let answers = 0;
  const stream = async function* (): AsyncGenerator<ModelEvent> {
    answers += 1;
    yield { type: 'started', headers: { 'retry-after': `${answers}` } };
    yield { type: 'text_delta', part: 0, delta: 'a' };
    yield FINISHED;
  };
  const { link: run } = listener({ admission: { admit }, stream });
  const served = serveTask(port1, run, { onBegin: () => {}, onSign: () => {}, onFell: () => {} });
  const { link, close } = linkOver({ port: port2 }, 1);
  onTestFinished(() => {
    close();
    served.close('ignored');
  });
  for (let request = 0; request < 2; request++) {
    const { settle } = await link.admission.admit({ inputTokens: 1, outputTokensMax: 10 }, never);
    for await (const event of link.stream('scripted', REQUEST, never))
      if (event.type === 'started') heard.push('heard');
    settle(NOTHING, {});
    await link.settled();
  }
  // One that was asked without leave is nobody's news.
  for await (const _ of link.stream('scripted', REQUEST, never));
  expect(heard).toEqual([
    'leave 1 began: 1',
    'heard',
    'leave 1 settled',
    'leave 2 began: 2',
    'heard',
    'leave 2 settled',
  ]);
});
